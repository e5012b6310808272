"""OpenAI Chat Completions, and Mistral, which takes the same shapes."""
import json
import re

import jsonschema
from mistralai.client import models as mistral
from openai.types import chat

import schema_rules as rules_of
from report import require

from .shape import NAME, PLAIN, SchemaTwin, Seen, Twin, changed, property_of
from .typed import conforms, forbid_unknown_keys, same

forbid_unknown_keys("openai.types")
FORMAT, MOST = "openai-chat", 128


def entries(tools):
    return [(tool["function"]["name"], tool["function"]["parameters"], tool["function"]) for tool in tools]


def types(tools):
    for tool in tools:
        conforms(chat.ChatCompletionFunctionToolParam, tool)
        as_mistral(mistral.Tool, tool)


def as_mistral(model, payload):
    same(json.loads(model.model_validate(payload).model_dump_json(by_alias=True, exclude_unset=True)), payload)


def rules(tools):
    names = [tool["function"]["name"] for tool in tools]
    require(len(tools) <= MOST, f"more than {MOST} tools")
    require(len(set(names)) == len(names), "two tools of one name")
    for name in names:
        require(re.fullmatch(NAME, name), f"the name {name!r}")


def schema_rules(schema, declaration):
    rules_of.is_valid(schema, jsonschema.Draft202012Validator, jsonschema.Draft7Validator)  # the second is Mistral's
    rules_of.root_is_object(schema, "oneOf", "anyOf", "allOf", "enum", "not", "$ref")
    require("properties" in schema, "the root has no properties")
    rules_of.arrays_say_their_items(schema)
    rules_of.references_lead_somewhere(schema)
    if declaration.get("strict"):
        rules_of.openai_strict(schema)


def replies(calls):
    made = [{"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}} for call, name, arguments in calls]
    whole = chat.ChatCompletion.model_validate({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{
            "index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": made}}]})
    message = whole.choices[0].message
    return {"model_dump()": whole.model_dump(), "without nulls": whole.model_dump(exclude_none=True), "message": message.model_dump(),
            "calls": [call.model_dump() for call in message.tool_calls]}


def result_types(append):
    for message in append:
        conforms(chat.ChatCompletionToolMessageParam, message)
        as_mistral(mistral.ToolMessage, message)


def result_rules(append, ids):
    require([message["tool_call_id"] for message in append] == ids, "not one message for every call, in order")
    for message in append:
        require(isinstance(message["content"], str) or message["content"], "content without parts")


def read(append):
    return [Seen(message["tool_call_id"], None, message["content"]) for message in append]


def list_twins(tools):
    yield Twin("types", "the flat form of Responses", "function", [{"type": "function", **tools[0]["function"]}])
    yield Twin("types", "an option that Chat lacks", "defer_loading", [{**tools[0], "function": {**tools[0]["function"], "defer_loading": True}}])
    yield Twin("types", "a declaration without parameters, which Mistral wants", "parameters", changed(tools, 0, "function", "parameters", to=None))
    yield Twin("rules", "a name with a dot", "the name 'a.b'", changed(tools, 0, "function", "name", to="a.b"))
    yield Twin("rules", "a long name", "the name", changed(tools, 0, "function", "name", to="a" * 65))
    yield Twin("rules", "a tool twice", "two tools", [tools[0], tools[0]])
    yield Twin("rules", "129 tools", "more than 128", [changed(tools[0], "function", "name", to=f"t{number}") for number in range(129)])


def schema_twins():
    yield SchemaTwin("a union at the root", "the root has anyOf", {**PLAIN, "anyOf": [{}]})
    yield SchemaTwin("no type at the root", "not object", {"properties": {}})
    yield SchemaTwin("no properties", "no properties", {"type": "object"})
    yield SchemaTwin("an array without items", "without items", property_of({"type": "array"}))
    yield SchemaTwin("an array that may be null, without items", "without items", property_of({"type": ["array", "null"]}))
    yield SchemaTwin("a reference to nothing", "leads nowhere", property_of({"$ref": "#/$defs/gone"}))
    yield SchemaTwin("what is no schema", "no Draft202012Validator schema", property_of({"type": "text"}))
    yield SchemaTwin("strict with an open object", "an open object", {**PLAIN, "additionalProperties": True}, True)
    yield SchemaTwin("strict with an optional property", "not every property", {**PLAIN, "required": []}, True)
    yield SchemaTwin("strict with a keyword too many", "minLength", property_of({"type": "string", "minLength": 1}), True)
    yield SchemaTwin("strict with a format too many", "the format uri", property_of({"type": "string", "format": "uri"}), True)
    yield SchemaTwin("strict with anything", "anything goes", property_of({}), True)


def result_twins(append):
    yield Twin("types", "content that is an object", "valid dictionary", changed(append, 0, "content", to={"a": 1}))
    yield Twin("types", "an id too little", "tool_call_id", changed(append, 0, "tool_call_id", to=None))
    yield Twin("types", "a mark that Chat lacks", "is_error", [{**append[0], "is_error": True}])
    yield Twin("rules", "a call unanswered", "not one message", append[1:])
    yield Twin("rules", "a call answered twice", "not one message", [*append, append[0]])
