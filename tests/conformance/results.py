"""Calls in every format: what the handlers get, and what the model is told."""
import base64
import json
import re

import jsonschema

import sample
from corpus.answers import ANSWERS, Expected
from lists import EVERYTHING
from report import require
from sdk import FORMATS
from sdk.shape import Seen

TYPES, RULES, TOLD, BACK, ALIKE = ("results by the SDK's types", "results by the rules", "results say what the handler said",
                                   "arguments find their way back", "every shape of a reply is read alike")
NOTHING = {"", "(no output)"}


def call_ids(form, count):
    """Ids as the provider makes them: Mistral's older ones have nine letters or digits."""
    return [f"call{number:05}" for number in range(count)]


def check_append(report, form, append, ids, said):
    report.check(f"{form.FORMAT}: {TYPES}", said, form.result_types, append)
    return report.check(f"{form.FORMAT}: {RULES}", said, form.result_rules, append, ids)


def told(seen, expected):
    """The model is told what the handler answered; where there is no mark for errors, the text says so."""
    if expected.error is not None:
        require(seen.error or (seen.error is None and seen.text.startswith("Error")), "no error")
        require(expected.error.lower() in seen.text.lower(), f"the error does not say {expected.error!r}: {seen.text[:200]}")
        return
    require(not seen.error and not (seen.error is None and seen.text.startswith("Error")), f"an error: {seen.text[:200]}")
    if expected.picture:
        kind, data = expected.picture
        shown = seen.picture and (seen.picture[0], base64.b64decode(seen.picture[1])) == expected.picture
        require(shown or (seen.picture is None and kind in seen.text), f"not the picture: {seen.text[:200]}")
    elif expected.cut:
        require(expected.text in seen.text and len(seen.text) < 300 and re.search(r"\d{3,}", seen.text), f"not cut as said: {seen.text[:200]}")
    elif expected.value is not None:
        value = seen.value if seen.value is not None else _parsed(seen.text)
        require(value == expected.value, f"another value: {str(value)[:200]}")
    elif expected.text == "":
        require(seen.text.strip() in NOTHING and seen.value is None, f"something: {seen.text[:200]!r}")
    else:
        require(seen.text == expected.text or (expected.text == "1e400" and "1e400" in seen.text), f"another text: {seen.text[:200]!r}")


def _parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return f"no JSON: {text}"


def check_answers(report, service):
    """Every answer of a webhook in one reply, with calls that never reach one."""
    beside = {
        "no_such_tool": ({}, Expected(error="no_such_tool")),
        "needs_city": ({"city": 5}, Expected(error="city")),
        "is_off": ({}, Expected(error="is_off")),
        "only_code": ({}, Expected(error="only be called by code")),
    }
    calls = [(name, {}, expected) for name, (_, expected) in ANSWERS.items()] + [(name, *rest) for name, rest in beside.items()]
    for form in FORMATS:
        ids = call_ids(form, len(calls))
        reply = next(iter(form.replies([(call, name, arguments) for call, (name, arguments, _) in zip(ids, calls)]).values()))
        append = service.run(form.FORMAT, reply)["append"]
        if not check_append(report, form, append, ids, "all answers in one reply"):
            continue
        for seen, (name, _, expected) in zip(form.read(append), calls, strict=True):
            report.check(f"{form.FORMAT}: {TOLD}", name, told, seen, expected)
        for call, (name, arguments, expected) in zip(ids, calls):  # and each by itself
            reply = next(iter(form.replies([(call, name, arguments)]).values()))
            check_append(report, form, service.run(form.FORMAT, reply)["append"], [call], name)


def check_replies(report, service):
    """Whatever part of the response the agent hands on, and however its SDK dumped it, the answer is the same."""
    calls = [("call00001", "object", {}), ("call00002", "error_400", {}), ("call00003", "text", {})]
    for form in FORMATS:
        first = None
        for label, reply in form.replies(calls).items():
            answer = service.run(form.FORMAT, reply)
            first = first or answer
            report.check(f"{form.FORMAT}: {ALIKE}", label, alike, form, first["append"], answer["append"])


def alike(form, one, other):
    without_id = lambda append: [seen._replace(id=None) for seen in form.read(append)]
    require(without_id(one) == without_id(other), "the answers differ")


def check_way_back(report, service, receiver, tools, chunk):
    """Calls with arguments that are read off the declared schema run, and bring the handler what the stored schema takes."""
    stored = {tool["name"]: tool for tool in tools}
    for form in FORMATS:
        for number in range(0, len(tools), chunk):
            answer = service.list(form.FORMAT, **EVERYTHING, tag=f"chunk-{number // chunk}")
            # Rules that the model is not told, or in words alone.
            lost = {note["name"] for note in answer["notes"] if note["effect"] == "lost" or note["detail"] == "is said in the description"}
            calls = []
            for name, schema, _ in form.entries(answer["tools"]):
                if "human" in stored[name].get("allowed_callers", ["human"]):
                    calls += [(name, arguments) for arguments in _arguments(schema)]
            ids = call_ids(form, len(calls))
            if not calls:
                continue
            reply = next(iter(form.replies([(call, *rest) for call, rest in zip(ids, calls)]).values()))
            ran = service.run(form.FORMAT, reply)
            check_append(report, form, ran["append"], ids, f"chunk {number // chunk}")
            for (name, arguments), call in zip(calls, ran["calls"], strict=True):
                said = f"{name} with {json.dumps(arguments)[:200]}"
                report.check(f"{form.FORMAT}: {BACK}", said, came_back, call, stored[name]["input_schema"], receiver.arguments.get(call["id"]), name in lost)


def _arguments(schema):
    """What a model would send: the least and the most, where a sample of it fits the schema."""
    found = []
    for full in (False, True):
        arguments = sample.arguments(schema, full)
        fits = schema is None or jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).is_valid(arguments)
        if fits and arguments not in found:
            found.append(arguments)
    return found


def came_back(call, schema, arguments, may_be_refused):
    """`may_be_refused`: the list said that a rule was lost, so a model could not know it."""
    refused = call["status"] == "rejected" and call["error"]["code"] == "invalid_input"
    if refused and may_be_refused:
        require(arguments is None, "refused, and the handler got it")
        return
    require(call["status"] == "succeeded" or (call["status"] == "failed" and arguments is not None), f"{call['status']}: {call['error']}")
    require(arguments is not None, "the handler got nothing")
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
    errors = list(validator.iter_errors(arguments))
    require(not errors, f"the handler got what the stored schema refuses: {errors and errors[0].message}")


def twins(report, service):
    calls = [("call00001", "text", {}), ("call00002", "error_400", {})]
    for form in FORMATS:
        label = lambda check: f"{form.FORMAT}: {check}"
        append = service.run(form.FORMAT, next(iter(form.replies(calls).values())))["append"]
        ids = [call for call, _, _ in calls]
        for twin in form.result_twins(append):
            check, more = (form.result_types, ()) if twin.check == "types" else (form.result_rules, (ids,))
            report.twin(label(TYPES if twin.check == "types" else RULES), twin.what, twin.reason, check, twin.payload, *more)
        marked = list(form.read(append))[1].error is not None
        report.twin(label(TOLD), "an error told as a success", "no error", told, Seen(None, False if marked else None, "no such city"), Expected(error="no such city"))
        report.twin(label(TOLD), "a success told as an error", "an error", told, Seen(None, True if marked else None, "Error: x"), Expected(text="x"))
        report.twin(label(TOLD), "another text", "another text", told, Seen(None, None, "y"), Expected(text="x"))
        report.twin(label(TOLD), "another value", "another value", told, Seen(None, None, '{"a": 2}'), Expected(value={"a": 1}))
        report.twin(label(TOLD), "half a text that is not said to be cut", "not cut as said", told, Seen(None, None, "line 0\n"), Expected(text="line 0\n", cut=True))
        report.twin(label(ALIKE), "another answer", "differ", alike, form, append, service.run(form.FORMAT, next(iter(form.replies(calls[:1]).values())))["append"])
        done = {"status": "succeeded", "error": None}
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        report.twin(label(BACK), "arguments that do not fit", "what the stored schema refuses", came_back, done, schema, {"n": "1"}, False)
        report.twin(label(BACK), "a call that was refused", "rejected", came_back, {"status": "rejected", "error": {"code": "invalid_input"}}, schema, None, False)
