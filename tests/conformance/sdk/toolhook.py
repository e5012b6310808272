"""Toolhook's own plain JSON: no SDK, so the contract's words alone."""
import re

import jsonschema

import schema_rules as rules_of
from report import require

from .shape import NAME, PLAIN, SchemaTwin, Seen, Twin, changed, property_of

FORMAT = "toolhook"


def entries(tools):
    return [(tool["name"], tool["input_schema"], tool) for tool in tools]


def types(tools):
    for tool in tools:
        require(set(tool) == {"name", "description", "input_schema"}, f"the keys {sorted(tool)}")
        require(isinstance(tool["description"], str) and tool["description"], "no description")


def rules(tools):
    require(len({tool["name"] for tool in tools}) == len(tools), "two tools of one name")
    for tool in tools:
        require(re.fullmatch(NAME, tool["name"]), f"the name {tool['name']!r}")


def schema_rules(schema, _):
    require(schema.get("type") == "object", "the root's type is not object")
    rules_of.is_valid(schema, jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator))
    rules_of.references_lead_somewhere(schema)


def replies(calls):
    made = [{"id": call, "name": name, "input": arguments} for call, name, arguments in calls]
    return {"calls": made}


def result_types(append):
    for one in append:
        require(set(one) == {"id", "name", "status", "text", "data"}, f"the keys {sorted(one)}")
        require(isinstance(one["text"], str), "text that is none")
        require(one["data"] is None or isinstance(one["data"], dict), "data that is no object")


def result_rules(append, ids):
    require([one["id"] for one in append] == ids, "not one result for every call, in order")


def read(append):
    return [Seen(one["id"], one["status"] != "succeeded", one["text"]) for one in append]


def list_twins(tools):
    yield Twin("types", "an option", "the keys", [{**tools[0], "strict": True}])
    yield Twin("types", "an empty description", "no description", changed(tools, 0, "description", to=""))
    yield Twin("rules", "a tool twice", "two tools", [tools[0], tools[0]])


def schema_twins():
    yield SchemaTwin("no type at the root", "not object", {"properties": {}})
    yield SchemaTwin("what is no schema", "schema at", property_of({"type": 1}))
    yield SchemaTwin("a reference to nothing", "leads nowhere", {**PLAIN, "not": {"$ref": "#/$defs/gone"}})


def result_twins(append):
    yield Twin("types", "another key", "the keys", [{**append[0], "error": "x"}])
    yield Twin("types", "data that is a list", "data that is no object", changed(append, 0, "data", to=[1]))
    yield Twin("rules", "a call unanswered", "not one result", append[1:])
