"""The tools of case files that stand beside the repository, where there are any."""
import json
import os
import re

FOLDER = os.path.normpath(os.path.join(os.path.dirname(__file__), "../../../../shared/cases"))
OPTIONS = ("strict", "input_examples", "defer_loading", "allowed_callers", "max_result_chars", "concurrent")


def handed_tools(folder=FOLDER):
    """Each tool under a name of its own. A name that the service refuses by contract is not what is looked at here."""
    if not os.path.isdir(folder):
        return
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".json"):
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as opened:
            given = json.load(opened)["given"]
        several = given.get("tools", [])
        several = [] if isinstance(several, dict) else several
        for number, tool in enumerate([given.get("tool"), *several]):
            if isinstance(tool, dict) and isinstance(tool.get("input_schema"), dict):
                yield _body(f"case_{file[:-5]}_{number}", tool)


def _body(name, tool):
    schema = _expanded(tool["input_schema"])
    options = {**tool, **tool.get("options", {})}
    body = {"name": re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64], "description": tool.get("description") or "From a case.",
            "input_schema": schema, "handler": "hook"}
    body.update({key: options[key] for key in OPTIONS if options.get(key) is not None})
    if isinstance(tool.get("output_schema"), dict):
        body["output_schema"] = tool["output_schema"]
    return body


def _expanded(value):
    """Stands in for the generators of large values; of those, schemas use nesting alone."""
    if isinstance(value, dict):
        if set(value) == {"$gen"}:
            return _generated(value["$gen"])
        return {key: _expanded(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_expanded(member) for member in value]
    return value


def _generated(spec):
    if "nested_schema" not in spec:
        return spec.get("repeat", "") * spec.get("times", 0)
    schema = {"type": "string"}
    for _ in range(spec["nested_schema"]["depth"]):
        inner = schema
        for step in reversed(spec["nested_schema"]["via"].split(".")):
            inner = {step: inner}
        schema = {"type": "object", **inner}
    return schema
