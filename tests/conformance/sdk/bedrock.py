"""AWS Bedrock Converse, by botocore's model of the service."""
import base64
import json
import re
import sys

import botocore.session
import jsonschema
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator

import schema_rules as rules_of
from report import Refused, require

from .shape import NAME, NAME_OF_PROPERTY, PLAIN, SchemaTwin, Seen, Twin, changed, property_of
from .typed import same

FORMAT = "bedrock"
SERVICE = botocore.session.Session().get_service_model("bedrock-runtime")
CONVERSE = SERVICE.operation_model("Converse")
SERIALIZER = create_serializer(SERVICE.metadata["protocol"])


def holds(shape_name, payload):
    """Held against a shape, with what botocore's own validator passes over: patterns, longest texts and enums."""
    shape = SERVICE.shape_for(shape_name)
    report = ParamValidator().validate(payload, shape)
    if report.has_errors():
        raise Refused(report.generate_report())
    _walk(shape, payload, shape_name)


def _walk(shape, value, at):
    if shape.type_name == "structure" and not getattr(shape, "is_document_type", False):
        require(not getattr(shape, "is_tagged_union", False) or len(value) == 1, f"{at}: not one member of a union")
        for key, member in value.items():
            require(key in shape.members, f"{at}: has no member {key}")
            _walk(shape.members[key], member, f"{at}.{key}")
    elif shape.type_name == "list":
        for index, member in enumerate(value):
            _walk(shape.member, member, f"{at}[{index}]")
    elif shape.type_name == "string":
        says = shape.metadata
        require("pattern" not in says or re.fullmatch(says["pattern"], value), f"{at}: does not match {says.get('pattern')}")
        require(len(value) <= says.get("max", sys.maxsize), f"{at}: longer than {says.get('max')}")
        require(not shape.enum or value in shape.enum, f"{at}: is none of {shape.enum}")


def serialized(**parameters):
    """The body that botocore would send; it has pictures as bytes, which JSON has as base64."""
    request = SERIALIZER.serialize_to_request({"modelId": "m", **parameters}, CONVERSE)
    return json.loads(request["body"])


def specs(tools):
    return [tool["toolSpec"] for tool in tools if "toolSpec" in tool]


def entries(tools):
    return [(spec["name"], spec["inputSchema"]["json"], spec) for spec in specs(tools)]


def types(tools):
    if tools:  # an empty list is said by leaving toolConfig out
        holds("ToolConfiguration", {"tools": tools})
        same(serialized(messages=[], toolConfig={"tools": tools})["toolConfig"]["tools"], tools)


def rules(tools):
    names = [spec["name"] for spec in specs(tools)]
    require(len(set(names)) == len(names), "two tools of one name")
    require(not tools or "toolSpec" in tools[0], "a cache point before any tool")
    for spec in specs(tools):
        require(re.fullmatch(NAME, spec["name"]), f"the name {spec['name']!r}")
        require(isinstance(spec["inputSchema"]["json"], dict), "a schema that is no object")


def schema_rules(schema, declaration):
    rules_of.is_valid(schema, jsonschema.Draft202012Validator)
    rules_of.root_is_object(schema, "oneOf", "anyOf", "allOf", "$ref")
    rules_of.property_names(schema, NAME_OF_PROPERTY)
    rules_of.references_lead_somewhere(schema)
    if declaration.get("strict"):
        rules_of.anthropic_strict(schema)


def replies(calls):
    content = [{"toolUse": {"toolUseId": call, "name": name, "input": arguments}} for call, name, arguments in calls]
    content.insert(0, {"text": "I look."})
    whole = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use",
             "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}
    holds("ConverseResponse", whole)
    return {"response": {"ResponseMetadata": {"HTTPStatusCode": 200}, **whole}, "message": whole["output"]["message"], "content": content}


def result_types(append):
    for message in append:
        holds("Message", message)
        sent = _with_bytes(message)
        same(serialized(messages=[sent])["messages"], [message])


def _with_bytes(value):
    """As boto3 wants pictures: bytes. What we answer is the request's JSON, where they are base64."""
    if isinstance(value, dict):
        return {key: base64.b64decode(member) if key == "bytes" and isinstance(member, str) else _with_bytes(member) for key, member in value.items()}
    return [_with_bytes(member) for member in value] if isinstance(value, list) else value


def result_rules(append, ids):
    require(len(append) == (1 if ids else 0) and all(message["role"] == "user" for message in append), "not one user message")
    results = [block["toolResult"] for block in append[0]["content"]]
    require([one["toolUseId"] for one in results] == ids, "not one block for every call, in order")
    for block in (block for one in results for block in one["content"]):
        require(block.get("text", "x").strip(), "empty text")
        if "json" in block:
            require(isinstance(block["json"], dict), "a json block that is no object")
            _no_empty_keys(block["json"])


def _no_empty_keys(value):
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _no_empty_keys(member)
    require(not isinstance(value, dict) or "" not in value, "an empty key in a json block")


def read(append):
    for block in append[0]["content"]:
        one = block["toolResult"]
        first, error = one["content"][0], one["status"] == "error"
        picture = first.get("image")
        yield Seen(one["toolUseId"], error, first.get("text", ""), first.get("json"),
                   picture and (f"image/{picture['format']}", picture["source"]["bytes"]))


def list_twins(tools):
    spec = specs(tools)[0]
    other = lambda **more: [{"toolSpec": {**spec, **more}}]
    yield Twin("types", "a schema that is not wrapped", "inputSchema", other(inputSchema=PLAIN))
    yield Twin("types", "an empty description", "description", other(description=""))
    yield Twin("types", "a name with a dot", "does not match", other(name="a.b"))
    yield Twin("types", "a long name", "longer than 64", other(name="a" * 65))
    yield Twin("types", "an option that Bedrock lacks", "input_examples", other(input_examples=[]))
    yield Twin("types", "a cache point beside a tool", "toolSpec", [{"toolSpec": spec, "cachePoint": {"type": "default"}}])
    yield Twin("types", "a cache point that is none", "is none of", [*tools, {"cachePoint": {"type": "sometimes"}}])
    yield Twin("rules", "a name that starts with a digit", "the name", other(name="9a"))
    yield Twin("rules", "a cache point first", "before any tool", [{"cachePoint": {"type": "default"}}, *tools])


def schema_twins():
    yield SchemaTwin("a union at the root", "the root has oneOf", {**PLAIN, "oneOf": [{}]})
    yield SchemaTwin("no type at the root", "not object", {"properties": {}})
    yield SchemaTwin("a name with a dollar", "the property name", {"type": "object", "properties": {"$x": {}}})
    yield SchemaTwin("strict with a length", "maxLength", property_of({"type": "string", "maxLength": 3}), True)
    yield SchemaTwin("strict with a lookahead", "the pattern", property_of({"type": "string", "pattern": "^(?!a)"}), True)


def result_twins(append):
    path = (0, "content", 0, "toolResult")
    yield Twin("types", "a status that is none", "is none of", changed(append, *path, "status", to="failed"))
    yield Twin("types", "content that is text", "content", changed(append, *path, "content", to="text"))
    yield Twin("types", "an id with a slash", "does not match", changed(append, *path, "toolUseId", to="a/b"))
    yield Twin("types", "a picture of another kind", "is none of", changed(append, *path, "content", to=[{"image": {"format": "tiff", "source": {"bytes": "AAAA"}}}]))
    yield Twin("rules", "a json block that is a list", "no object", changed(append, *path, "content", to=[{"json": [1]}]))
    yield Twin("rules", "an empty key", "an empty key", changed(append, *path, "content", to=[{"json": {"a": [{"": 1}]}}]))
    yield Twin("rules", "empty text", "empty text", changed(append, *path, "content", to=[{"text": " "}]))
    yield Twin("rules", "a call unanswered", "not one block", changed(append, 0, "content", to=append[0]["content"][1:]))
    yield Twin("rules", "a message for each result", "not one user message", [{"role": "user", "content": [block]} for block in append[0]["content"]])
