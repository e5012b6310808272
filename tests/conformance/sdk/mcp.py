"""The Model Context Protocol: what a server would answer to tools/list and tools/call, in two revisions."""
import re

import jsonschema
from mcp_types.methods import serialize_server_result, validate_client_request

import schema_rules as rules_of
from report import require

from .shape import NAME, PLAIN, SchemaTwin, Seen, Twin, changed, property_of
from .typed import same

FORMAT = "mcp"
OLD, NEW = "2025-11-25", "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": NEW, "io.modelcontextprotocol/clientCapabilities": {}}


def result(method, version, payload):
    """Held as a result; the newest revision has some members more, which are the server's and not the format's."""
    if version == NEW:
        beside = {"ttlMs": 0, "cacheScope": "private"} if method == "tools/list" else {}
        payload = {"resultType": "complete", **beside, **payload}
    same(serialize_server_result(method, version, payload), payload)


def entries(tools):
    return [(tool["name"], tool["inputSchema"], tool) for tool in tools]


def types(tools):
    for version in (OLD, NEW):
        result("tools/list", version, {"tools": tools})


def rules(tools):
    names = [tool["name"] for tool in tools]
    require(len(set(names)) == len(names), "two tools of one name")
    for tool in tools:
        require(re.fullmatch(NAME, tool["name"]), f"the name {tool['name']!r}")
        require(None not in tool.values() and None not in tool.get("annotations", {}).values(), "a member that is null")


def schema_rules(schema, declaration):
    for one in (schema, declaration.get("outputSchema")):
        if one is None:
            continue
        require(one.get("type") == "object", "the root's type is not object")
        draft = jsonschema.validators.validator_for(one, jsonschema.Draft202012Validator)
        rules_of.is_valid(one, draft)
        rules_of.references_lead_somewhere(one)
        require(not any("x-mcp-header" in inner for _, inner in rules_of.objects(one)), "marks an argument for the headers")


def replies(calls):
    made = [{"jsonrpc": "2.0", "id": call, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}} for call, name, arguments in calls]
    for one in made:
        validate_client_request("tools/call", NEW, one["params"])
    return {"requests": made, "params": [one["params"] for one in made], "old": [{**one, "params": {key: one["params"][key] for key in ("name", "arguments")}} for one in made]}


def result_types(append):
    for one in append:
        for version in (OLD, NEW):
            result("tools/call", version, one)


def result_rules(append, ids):
    require(len(append) == len(ids), "not one result for every call")
    for one in append:
        require(isinstance(one.get("content"), list), "no content")
        require(isinstance(one.get("structuredContent", {}), dict), "structuredContent that is no object, which revisions before 2026-07-28 refuse")
        require(not (one.get("isError") and "structuredContent" in one), "an error with structuredContent")
        require(not one.get("isError") or one["content"], "an error that says nothing")


def read(append):
    for one in append:
        first = one["content"][0] if one["content"] else {"text": ""}
        picture = (first["mimeType"], first["data"]) if first.get("type") == "image" else None
        yield Seen(None, one.get("isError", False), first.get("text", ""), one.get("structuredContent"), picture)


def list_twins(tools):
    yield Twin("types", "keys in snake_case", "inputSchema", [{"name": "a", "input_schema": PLAIN}])
    yield Twin("types", "an option that MCP lacks", "reads it as", [{**tools[0], "strict": True}])
    yield Twin("types", "a schema that is no object's", "inputSchema", changed(tools, 0, "inputSchema", to={"type": "array"}))
    yield Twin("types", "a hint that is no boolean", "readOnlyHint", [{**tools[0], "annotations": {"readOnlyHint": "perhaps"}}])
    yield Twin("rules", "a null", "a member that is null", [{**tools[0], "title": None}])
    yield Twin("rules", "a name with a slash", "the name", changed(tools, 0, "name", to="a/b"))


def schema_twins():
    yield SchemaTwin("no type at the root", "not object", {"properties": {}})
    yield SchemaTwin("a mark for headers", "for the headers", property_of({"type": "string", "x-mcp-header": "Q"}))
    yield SchemaTwin("what is no schema", "schema at", property_of({"type": 1}))
    yield SchemaTwin("a reference to nothing", "leads nowhere", property_of({"$ref": "#/$defs/gone"}))


def result_twins(append):
    yield Twin("types", "an older name of the mark", "reads it as", [{**append[0], "is_error": True}])
    yield Twin("types", "a list as structuredContent", "structuredContent", [{"content": [], "structuredContent": [1]}])
    yield Twin("types", "no content", "content", [{"structuredContent": {"a": 1}}])
    yield Twin("types", "a kind of content that is none", "content", [{"content": [{"type": "json", "json": {}}]}])
    yield Twin("rules", "an error with structuredContent", "an error with", [{"content": [], "structuredContent": {}, "isError": True}] * len(append))
    yield Twin("rules", "a call unanswered", "not one result", append[1:])
