"""Cohere v2 chat. Its models keep what they do not know, so the keys are looked at here."""
import json

import cohere
import jsonschema

import schema_rules as rules_of
from report import require

from . import openai_chat
from .shape import PLAIN, SchemaTwin, Seen, Twin, changed, property_of
from .typed import same

FORMAT = "cohere"
entries = openai_chat.entries


def as_dumped(model, payload):
    same(json.loads(model.model_validate(payload).model_dump_json(exclude_unset=True)), payload)


def types(tools):
    for tool in tools:
        as_dumped(cohere.ToolV2, tool)


def rules(tools):
    names = [tool["function"]["name"] for tool in tools]
    require(len(set(names)) == len(names), "two tools of one name")
    for tool in tools:
        require(set(tool) == {"type", "function"}, f"the keys {sorted(tool)}")
        require(set(tool["function"]) == {"name", "description", "parameters"}, f"the keys {sorted(tool['function'])}")


def schema_rules(schema, _):
    rules_of.is_valid(schema, jsonschema.Draft202012Validator)
    rules_of.root_is_object(schema, "oneOf", "anyOf", "allOf", "$ref")
    rules_of.arrays_say_their_items(schema)
    rules_of.references_lead_somewhere(schema)


def replies(calls):
    made = [{"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}} for call, name, arguments in calls]
    whole = cohere.V2ChatResponse.model_validate({"id": "c1", "finish_reason": "TOOL_CALL", "message": {
        "role": "assistant", "tool_plan": "I look.", "tool_calls": made}})
    return {"model_dump()": whole.model_dump(), "message": whole.message.model_dump(), "calls": [call.model_dump() for call in whole.message.tool_calls]}


def result_types(append):
    for message in append:
        as_dumped(cohere.ToolChatMessageV2, message)


def result_rules(append, ids):
    require([message["tool_call_id"] for message in append] == ids, "not one message for every call, in order")
    for message in append:
        require(set(message) == {"role", "tool_call_id", "content"}, f"the keys {sorted(message)}")
        content = message["content"]
        require(content and (not isinstance(content, str) or content.strip()), "empty content")
        for part in [] if isinstance(content, str) else content:
            require(set(part) == {"type", "document"} and isinstance(part["document"]["data"], dict), "a document without an object as its data")


def read(append):
    for message in append:
        content = message["content"]
        text, value = (content, None) if isinstance(content, str) else ("", content[0]["document"]["data"])
        yield Seen(message["tool_call_id"], None, text, value)


def list_twins(tools):
    yield Twin("types", "a function without parameters", "parameters", changed(tools, 0, "function", "parameters", to=None))
    yield Twin("types", "another type of tool", "type", changed(tools, 0, "type", to="tool"))
    yield Twin("rules", "strict, which Cohere has for the request alone", "the keys", [{**tools[0], "function": {**tools[0]["function"], "strict": True}}])
    yield Twin("rules", "a tool twice", "two tools", [tools[0], tools[0]])


def schema_twins():
    yield SchemaTwin("a union at the root", "the root has anyOf", {**PLAIN, "anyOf": [{}]})
    yield SchemaTwin("an array without items", "without items", property_of({"type": "array"}))
    yield SchemaTwin("a reference to nothing", "leads nowhere", property_of({"$ref": "#/$defs/gone"}))


def result_twins(append):
    yield Twin("types", "content that is an object", "content", changed(append, 0, "content", to={"a": 1}))
    yield Twin("rules", "a mark that Cohere lacks", "the keys", [{**append[0], "is_error": True}, *append[1:]])
    yield Twin("rules", "empty content", "empty content", changed(append, 0, "content", to=""))
    yield Twin("rules", "a document that is text", "a document without", changed(append, 0, "content", to=[{"type": "document", "document": {"data": "x"}}]))
    yield Twin("rules", "a call unanswered", "not one message", append[1:])
