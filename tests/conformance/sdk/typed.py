"""Payloads held against an SDK's own types: validate, dump, compare with what was sent.

Validation alone is not enough. TypedDicts pass over keys that they do not know unless told otherwise, `Iterable` fields
are only looked at when they are iterated, and pydantic models drop what they do not know.
"""
import importlib
import pkgutil

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict

from report import Refused

_ADAPTERS = {}


def forbid_unknown_keys(package):
    """Makes every TypedDict of a package refuse keys that it does not name. Call it before the first `conforms`."""
    root = importlib.import_module(package)
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        importlib.import_module(found.name)
    todo = [root] + [module for name, module in _modules() if name.startswith(f"{package}.")]
    for module in todo:
        for value in list(vars(module).values()):
            if isinstance(value, type) and is_typeddict(value):
                config = dict(getattr(value, "__pydantic_config__", None) or {})
                if config.get("extra") != "allow":
                    config.update(extra="forbid", arbitrary_types_allowed=True)
                    value.__pydantic_config__ = ConfigDict(**config)


def _modules():
    import sys
    return list(sys.modules.items())


def conforms(kind, payload):
    """Holds a payload against a type. The adapter is kept: what is validated lazily refers to it."""
    if id(kind) not in _ADAPTERS:
        _ADAPTERS[id(kind)] = (kind, TypeAdapter(kind))
    same(_drained(_ADAPTERS[id(kind)][1].validate_python(payload)), payload)


def same(seen, sent):
    """The dump says what was sent."""
    if seen != sent:
        raise Refused(f"the SDK reads it as {seen!r}, not as {sent!r}")


def _drained(value):
    if isinstance(value, dict):
        return {key: _drained(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)) or hasattr(value, "__next__"):
        return [_drained(member) for member in value]
    return value
