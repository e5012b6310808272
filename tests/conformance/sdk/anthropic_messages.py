"""Anthropic Messages."""
import json
import re

import jsonschema
from anthropic import types as api

import schema_rules as rules_of
from report import require

from .shape import NAME, NAME_OF_PROPERTY, PLAIN, SchemaTwin, Seen, Twin, changed, property_of
from .typed import conforms, forbid_unknown_keys

forbid_unknown_keys("anthropic.types")
FORMAT = "anthropic"


def ours(tools):
    return [tool for tool in tools if "input_schema" in tool]


def entries(tools):
    return [(tool["name"], tool["input_schema"], tool) for tool in ours(tools)]


def types(tools):
    for tool in tools:
        conforms(api.ToolParam if "input_schema" in tool else api.ToolUnionParam, tool)


def rules(tools):
    names = [tool["name"] for tool in tools]
    require(len(set(names)) == len(names), "two tools of one name")
    companions = [tool["type"] for tool in tools if "input_schema" not in tool]
    strict = [tool["input_schema"] for tool in ours(tools) if tool.get("strict")]
    counts = [rules_of.optional_and_unions(schema) for schema in strict]
    require(len(strict) <= 20, "more than 20 strict tools")
    require(sum(optional for optional, _ in counts) <= 24, "more than 24 optional parameters")
    require(sum(unions for _, unions in counts) <= 16, "more than 16 unions")
    require(not tools or any(not tool.get("defer_loading") for tool in ours(tools)), "all tools are deferred")
    require(sum("cache_control" in tool for tool in tools) <= 4, "more than 4 cache marks")
    for tool in ours(tools):
        _one(tool, companions)


def _one(tool, companions):
    require(re.fullmatch(NAME, tool["name"]), f"the name {tool['name']!r}")
    require(not (tool.get("defer_loading") and "cache_control" in tool), "deferred with a cache mark")
    callers = tool.get("allowed_callers")
    require(callers is None or callers, "nobody may call it")
    code = [caller for caller in callers or [] if caller.startswith("code_execution")]
    require(not (code and tool.get("strict")), "strict, and code may call it")
    require(not (code and rules_of.is_recursive(tool["input_schema"])), "recursive, and code may call it")
    for caller in code:
        require(caller in companions, f"{caller} may call, and is not there")
    for example in tool.get("input_examples", []):
        errors = list(jsonschema.Draft202012Validator(tool["input_schema"]).iter_errors(example))
        require(not errors, f"an example does not fit: {errors and errors[0].message}")
    require(tool.get("input_examples") != [], "examples, and none of them")


def searchable(tools):
    deferred = any(tool.get("defer_loading") for tool in tools)
    require(not deferred or any(tool.get("type", "").startswith("tool_search") for tool in tools), "deferred tools without a search")


def schema_rules(schema, declaration):
    rules_of.is_valid(schema, jsonschema.Draft202012Validator)
    rules_of.root_is_object(schema, "oneOf", "anyOf", "allOf", "$ref")
    rules_of.property_names(schema, NAME_OF_PROPERTY)
    rules_of.references_lead_somewhere(schema)
    if declaration.get("strict"):
        rules_of.anthropic_strict(schema)


def replies(calls):
    content = [{"type": "tool_use", "id": call, "name": name, "input": arguments} for call, name, arguments in calls]
    content[:0] = [{"type": "text", "text": "I look."}, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]
    whole = api.Message.model_validate({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
                                        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}})
    return {"model_dump()": whole.model_dump(), "without nulls": whole.model_dump(exclude_none=True), "content": whole.model_dump()["content"],
            "streamed blocks": json.loads(json.dumps(content))}


def result_types(append):
    for message in append:
        conforms(api.MessageParam, message)
        for block in message["content"]:
            conforms(api.ToolResultBlockParam, block)


def result_rules(append, ids):
    require(len(append) == (1 if ids else 0) and all(message["role"] == "user" for message in append), "not one user message")
    require([block["tool_use_id"] for message in append for block in message["content"]] == ids, "not one block for every call, in order")
    for block in append[0]["content"]:
        content = block.get("content", "x")
        texts = [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
        require(content and all(text.strip() for text in texts), "empty text")
        require(not block.get("is_error") or all(part["type"] == "text" for part in content if isinstance(part, dict)), "an error that is no text")


def read(append):
    for block in append[0]["content"]:
        content, error = block.get("content", ""), block.get("is_error", False)
        if isinstance(content, str):
            yield Seen(block["tool_use_id"], error, content)
        else:
            source = content[0]["source"]
            yield Seen(block["tool_use_id"], error, picture=(source["media_type"], source["data"]))


def list_twins(tools):
    at = next(index for index, tool in enumerate(tools) if "input_schema" in tool)
    plain = {"name": "plain", "input_schema": PLAIN}
    loose = {"name": "loose", "input_schema": {**PLAIN, "required": []}, "strict": True}
    yield Twin("types", "an option that Anthropic lacks", "result_type", [{**tools[at], "result_type": "text"}])
    yield Twin("types", "a caller of OpenAI's", "allowed_callers", [{**tools[at], "allowed_callers": ["programmatic"]}])
    yield Twin("types", "an example that is no object", "valid dictionary", [{**tools[at], "input_examples": ["x"]}])
    yield Twin("types", "a search that is none", "tool_search_tool_words", [{"type": "tool_search_tool_words", "name": "tool_search_tool_words"}])
    yield Twin("types", "a cache time that is none", "ttl", [{**plain, "cache_control": {"type": "ephemeral", "ttl": "2h"}}])
    yield Twin("rules", "a deferred tool with a cache mark", "deferred with a cache", [plain, {**plain, "name": "b", "defer_loading": True, "cache_control": {"type": "ephemeral"}}])
    yield Twin("rules", "nothing but deferred tools", "all tools are deferred", [{**plain, "defer_loading": True}])
    yield Twin("rules", "strict that code may call", "strict, and code", [{**plain, "strict": True, "allowed_callers": ["code_execution_20260120"]}])
    yield Twin("rules", "code may call and is not there", "is not there", [{**plain, "allowed_callers": ["code_execution_20260120"]}])
    yield Twin("rules", "21 strict tools", "more than 20", [{**plain, "name": f"t{n}", "strict": True} for n in range(21)])
    yield Twin("rules", "25 optional parameters", "more than 24", [{**loose, "name": f"t{a}", "input_schema": {**PLAIN, "required": [], "properties": {
        f"p{n}": {"type": "string"} for n in range(5)}}} for a in range(5)])
    yield Twin("rules", "17 unions", "more than 16", [{**plain, "strict": True, "input_schema": {**PLAIN, "required": [f"p{n}" for n in range(17)], "properties": {
        f"p{n}": {"type": ["string", "null"]} for n in range(17)}}}])
    yield Twin("rules", "an example that does not fit", "does not fit", [{**plain, "input_examples": [{"q": 1}]}])
    yield Twin("rules", "deferred without a search", "without a search", [plain, {**plain, "name": "b", "defer_loading": True}])


def schema_twins():
    yield SchemaTwin("a union at the root", "the root has oneOf", {**PLAIN, "oneOf": [{}]})
    yield SchemaTwin("no type at the root", "not object", {"properties": {}})
    yield SchemaTwin("a name with brackets", "the property name 'a[b]'", {"type": "object", "properties": {"a[b]": {}}})
    yield SchemaTwin("a bad name deep inside", "the property name", property_of({"type": "array", "items": {"type": "object", "properties": {"$x": {}}}}))
    yield SchemaTwin("a reference to nothing", "leads nowhere", property_of({"$ref": "#/definitions/gone"}))
    yield SchemaTwin("the tuple of draft 7", "no Draft202012Validator schema", property_of({"type": "array", "items": [{}]}))
    yield SchemaTwin("strict with a range", "minimum", property_of({"type": "integer", "minimum": 1}), True)
    yield SchemaTwin("strict and open", "an open object", {**PLAIN, "additionalProperties": True}, True)
    yield SchemaTwin("strict and recursive", "recursive", property_of({"$ref": "#"}), True)
    yield SchemaTwin("strict with two items at least", "minItems", property_of({"type": "array", "items": {"type": "string"}, "minItems": 2}), True)


def result_twins(append):
    block = append[0]["content"][0]
    yield Twin("types", "content that is an object", "valid dictionary", changed(append, 0, "content", 0, "content", to={"a": 1}))
    yield Twin("types", "a JSON block", "json", changed(append, 0, "content", 0, "content", to=[{"type": "json", "json": {}}]))
    yield Twin("types", "OpenAI's role", "role", changed(append, 0, "role", to="tool"))
    yield Twin("rules", "a message for each result", "not one user message", [{"role": "user", "content": [one]} for one in append[0]["content"]])
    yield Twin("rules", "a call unanswered", "not one block", changed(append, 0, "content", to=append[0]["content"][1:]))
    yield Twin("rules", "empty text", "empty text", changed(append, 0, "content", 0, to={**block, "content": [{"type": "text", "text": ""}]}))
