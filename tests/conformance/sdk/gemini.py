"""Google Gemini generateContent."""
import re

import jsonschema
from google.genai import types as genai

import schema_rules as rules_of
from report import require

from .shape import NAME, PLAIN, SchemaTwin, Seen, Twin, changed, property_of
from .typed import same

FORMAT, MOST = "gemini", 512
BEHAVIORS = {"BLOCKING", "NON_BLOCKING"}  # the types let any text pass
PICTURES = {"image/png", "image/jpeg", "image/webp"}


def declarations(tools):
    return [declaration for tool in tools for declaration in tool["functionDeclarations"]]


def entries(tools):
    return [(declaration["name"], declaration.get("parametersJsonSchema"), declaration) for declaration in declarations(tools)]


def types(tools):
    for tool in tools:
        as_dumped(genai.Tool, tool)


def as_dumped(model, payload):
    """The SDK dumps bytes in the alphabet for URLs, and reads both."""
    seen = model.model_validate(payload).model_dump(mode="json", by_alias=True, exclude_none=True)
    for picture in _pictures(seen):
        picture["data"] = picture["data"].replace("-", "+").replace("_", "/")
    same(seen, payload)


def _pictures(value):
    for key, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key == "inlineData":
            yield member
        else:
            yield from _pictures(member)


def rules(tools):
    require(len(tools) <= 1, "more than one entry")
    require(all(tool["functionDeclarations"] for tool in tools), "an entry without declarations")
    names = [declaration["name"] for declaration in declarations(tools)]
    require(len(names) <= MOST, f"more than {MOST} declarations")
    require(len(set(names)) == len(names), "two tools of one name")
    for one in declarations(tools):
        require(re.fullmatch(NAME, one["name"]), f"the name {one['name']!r}")
        require(not ("parameters" in one and "parametersJsonSchema" in one), "two schemas")
        require(one.get("behavior", "BLOCKING") in BEHAVIORS, f"the behavior {one.get('behavior')}")


def schema_rules(schema, declaration):
    output = declaration.get("responseJsonSchema")
    if output is not None:
        rules_of.is_valid(output, jsonschema.Draft202012Validator)
        rules_of.gemini(output)
    if schema is None:
        return  # takes nothing
    rules_of.is_valid(schema, jsonschema.Draft202012Validator)
    rules_of.root_is_object(schema, "oneOf", "anyOf")
    rules_of.property_names(schema, r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
    rules_of.arrays_say_their_items(schema)
    rules_of.references_lead_somewhere(schema)
    rules_of.gemini(schema)


def replies(calls):
    parts = [{"functionCall": {"id": call, "name": name, "args": arguments}} for call, name, arguments in calls]
    parts[0]["thoughtSignature"] = "AAAA"
    parts.insert(0, {"text": "I look.", "thought": True})
    whole = genai.GenerateContentResponse.model_validate({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
    without = [{"functionCall": {key: value for key, value in part["functionCall"].items() if key != "id"}} for part in parts[1:]]
    return {"model_dump(mode='json')": whole.model_dump(mode="json"), "by alias": whole.model_dump(mode="json", by_alias=True, exclude_none=True),
            "content": whole.candidates[0].content.model_dump(mode="json"), "parts": parts, "parts without ids": without}


def result_types(append):
    for content in append:
        as_dumped(genai.Content, content)


def result_rules(append, ids):
    require(len(append) == (1 if ids else 0) and all(content["role"] == "user" for content in append), "not one content of the user's")
    found = [part["functionResponse"] for part in append[0]["parts"]]
    require(len(found) == len(ids), "not as many responses as calls")
    require([one.get("id") for one in found] in (ids, [None] * len(ids)), "not the calls' ids, in order")
    for one in found:
        require(isinstance(one["response"], dict), "a response that is no object")
        require(len({"output", "error"} & set(one["response"])) == 1, "neither output nor error, or both")
        for part in one.get("parts", []):
            require(part["inlineData"]["mimeType"] in PICTURES, f"a picture of type {part['inlineData']['mimeType']}")


def read(append):
    for part in append[0]["parts"]:
        one = part["functionResponse"]
        response = one["response"]
        if "error" in response:
            yield Seen(one.get("id"), True, response["error"])
            continue
        output, picture = response["output"], None
        if one.get("parts"):
            data = one["parts"][0]["inlineData"]
            picture = (data["mimeType"], data["data"])
        yield Seen(one.get("id"), False, *((output, None) if isinstance(output, str) else ("", output)), picture)


def list_twins(tools):
    first = declarations(tools)[0]
    entry = lambda **more: [{"functionDeclarations": [{**first, **more}]}]
    yield Twin("types", "strict, which Gemini lacks", "strict", entry(strict=True))
    yield Twin("types", "the flat form of others", "name", [{"name": "a", "description": "d"}])
    yield Twin("types", "a description that is no text", "description", entry(description=1))
    yield Twin("rules", "two schemas", "two schemas", entry(parameters={"type": "OBJECT"}, parametersJsonSchema=PLAIN))
    yield Twin("rules", "a behavior that is none", "the behavior", entry(behavior="SOMETIMES"))
    yield Twin("rules", "a name that starts with a digit", "the name", entry(name="9a"))
    yield Twin("rules", "an entry for each tool", "more than one entry", [*tools, *tools])
    yield Twin("rules", "513 declarations", "more than 512", [{"functionDeclarations": [{**first, "name": f"t{n}"} for n in range(513)]}])


def schema_twins():
    yield SchemaTwin("a keyword that is not listed", "const", property_of({"const": 1}))
    yield SchemaTwin("an array without items", "without items", property_of({"type": "array"}))
    yield SchemaTwin("an enum with an empty text", "the enum", property_of({"type": "string", "enum": ["", "a"]}))
    yield SchemaTwin("an enum of booleans", "the enum", property_of({"enum": [True]}))
    yield SchemaTwin("a ghost", "without describing", {"type": "object", "properties": {"a": {}}, "required": ["b"]})
    yield SchemaTwin("a property name with a dash", "the property name", {"type": "object", "properties": {"a-b": {}}})
    yield SchemaTwin("empty properties", "empty properties", {"type": "object", "properties": {}})
    yield SchemaTwin("a union at the root", "the root has anyOf", {**PLAIN, "anyOf": [{}]})


def result_twins(append):
    path = (0, "parts", 0, "functionResponse")
    yield Twin("types", "a response that is a list", "response", changed(append, *path, "response", to=[1]))
    yield Twin("types", "a mark that Gemini lacks", "is_error", changed(append, *path, to=lambda old: {**old, "is_error": True}))
    yield Twin("types", "keys in snake_case", "reads it as", [{"role": "user", "parts": [{"function_response": {"name": "a", "response": {}}}]}])
    yield Twin("rules", "the result itself for the response", "neither output nor error", changed(append, *path, "response", to={"a": 1}))
    yield Twin("rules", "a call unanswered", "not as many", changed(append, 0, "parts", to=append[0]["parts"][1:]))
    yield Twin("rules", "a content for each result", "not one content", [{"role": "user", "parts": [part]} for part in append[0]["parts"]])
    gif = [{"inlineData": {"mimeType": "image/gif", "data": "AAAA"}}]
    yield Twin("rules", "a GIF", "a picture of type", changed(append, *path, to=lambda old: {**old, "parts": gif}))
