"""Counts what every check accepted and refused, and sees that every check can refuse."""
import sys
from collections import Counter


class Refused(Exception):
    """A rule of a provider is broken; the text says which."""


def require(holds, rule):
    """One rule of a check."""
    if not holds:
        raise Refused(rule)


def reason(error):
    """An SDK's error on one line, without the links that pydantic adds."""
    lines = [line.strip() for line in str(error).splitlines() if "errors.pydantic.dev" not in line]
    kind = "" if isinstance(error, Refused) else f"{type(error).__name__}: "
    return kind + " ".join(line for line in lines if line)


class Report:
    """A check is a name; what it is held against are subjects (must be accepted) and twins (must be refused)."""

    def __init__(self, most_shown=5):
        self.accepted, self.refused, self.twins = Counter(), Counter(), Counter()
        self.names, self.faults, self.shown, self.most_shown = [], 0, Counter(), most_shown

    def check(self, name, subject, function, *args):
        """Whether the function takes it. Pydantic can panic with what is no Exception, so everything is caught."""
        self._known(name)
        try:
            function(*args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self.refused[name] += 1
            self._fault(name, f"{subject}: {reason(error)[:700]}")
            return False
        self.accepted[name] += 1
        return True

    def twin(self, name, what, expected, function, *args):
        """The function has to refuse it, for the reason that is expected."""
        self._known(name)
        try:
            function(*args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            said = reason(error)
            if expected.lower() in said.lower():
                self.twins[name] += 1
                print(f"  {name}: {what} is refused: {_around(said, expected)}")
                return
            self._twin_fault(name, f"{what}: refused for another reason than {expected!r}: {said[:400]}")
            return
        self._twin_fault(name, f"{what}: accepted")

    def _known(self, name):
        if name not in self.names:
            self.names.append(name)

    def _twin_fault(self, name, text):
        self.faults += 1
        self._fault(name, f"twin: {text}")

    def _fault(self, name, text):
        self.shown[name] += 1
        if self.shown[name] <= self.most_shown:
            print(f"FAIL {name}: {text}", file=sys.stderr)
        elif self.shown[name] == self.most_shown + 1:
            print(f"FAIL {name}: and more", file=sys.stderr)

    def close(self):
        """Prints the table; the exit code."""
        width = max(map(len, self.names))
        print(f"\n{'check'.ljust(width)}  accepted  refused  twins refused")
        for name in self.names:
            print(f"{name.ljust(width)}  {self.accepted[name]:8}  {self.refused[name]:7}  {self.twins[name]:13}")
            if not self.twins[name]:
                self._twin_fault(name, "there is none: nobody knows whether the check can fail")
            if not self.accepted[name]:
                self._twin_fault(name, "nothing was accepted: the check was not used")
        passed = sum(self.accepted.values()) + sum(self.twins.values())
        failed = sum(self.refused.values()) + self.faults
        print(f"\n{passed} passed, {failed} failed")
        return 1 if failed else 0


def _around(text, part, most=150):
    """The part of a long reason that matters."""
    at = max(text.lower().find(part.lower()) - most // 3, 0)
    return ("…" if at else "") + text[at:at + most] + ("…" if at + most < len(text) else "")
