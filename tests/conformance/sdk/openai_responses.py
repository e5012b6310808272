"""OpenAI Responses."""
import json
import re

import jsonschema
from openai.types import responses
from openai.types.responses.response_input_item_param import FunctionCallOutput

import schema_rules as rules_of
from report import require

from . import openai_chat
from .shape import NAME, Seen, Twin, changed
from .typed import conforms, forbid_unknown_keys

forbid_unknown_keys("openai.types")
FORMAT, MOST = "openai-responses", 128
MOST_TEXT = 10_485_760


def functions(tools):
    return [tool for tool in tools if tool["type"] == "function"]


def entries(tools):
    return [(tool["name"], tool["parameters"], tool) for tool in functions(tools)]


def types(tools):
    for tool in tools:
        conforms(responses.FunctionToolParam if tool["type"] == "function" else responses.ToolParam, tool)


def rules(tools):
    names = [tool["name"] for tool in functions(tools)]
    require(len(functions(tools)) <= MOST, f"more than {MOST} tools")
    require(len(set(names)) == len(names), "two tools of one name")
    companions = [tool["type"] for tool in tools if tool["type"] != "function"]
    for tool in functions(tools):
        require(re.fullmatch(NAME, tool["name"]), f"the name {tool['name']!r}")
        callers = tool.get("allowed_callers")
        require(callers is None or callers, "nobody may call it")
        require("programmatic" not in (callers or []) or "programmatic_tool_calling" in companions, "code may call, and no program tool is there")
    require(len(set(companions)) == len(companions), "a companion twice")


def searchable(tools):
    """Deferred tools have a search beside them, save where the agent brings its own."""
    deferred = any(tool.get("defer_loading") for tool in functions(tools))
    require(not deferred or any(tool["type"] == "tool_search" for tool in tools), "deferred tools without a search")


def schema_rules(schema, declaration):
    openai_chat.schema_rules(schema, declaration)
    if "output_schema" in declaration:
        rules_of.is_valid(declaration["output_schema"], jsonschema.Draft202012Validator)
        rules_of.references_lead_somewhere(declaration["output_schema"])


schema_twins = openai_chat.schema_twins


def replies(calls):
    output = [{"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
              for call, name, arguments in calls]
    output.insert(0, {"type": "reasoning", "id": "rs_1", "summary": []})
    whole = responses.Response.model_validate({"id": "resp_1", "created_at": 1, "model": "m", "object": "response", "output": output,
                                               "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"})
    return {"model_dump()": whole.model_dump(), "without nulls": whole.model_dump(exclude_none=True),
            "output": [item.model_dump() for item in whole.output]}


def result_types(append):
    for item in append:
        conforms(FunctionCallOutput, item)


def result_rules(append, ids):
    require([item["call_id"] for item in append] == ids, "not one item for every call, in order")
    for item in append:
        require(item["output"] != [], "output without parts")
        require(not isinstance(item["output"], str) or len(item["output"]) <= MOST_TEXT, "output too long")


def read(append):
    for item in append:
        if isinstance(item["output"], str):
            yield Seen(item["call_id"], None, item["output"])
        else:
            kind, _, data = item["output"][0]["image_url"].removeprefix("data:").partition(";base64,")
            yield Seen(item["call_id"], None, picture=(kind, data))


def list_twins(tools):
    at = next(index for index, tool in enumerate(tools) if tool["type"] == "function")
    yield Twin("types", "the nested form of Chat", "name", [{"type": "function", "function": tools[at]}])
    yield Twin("types", "strict left unsaid", "strict", changed(tools, at, "strict", to=None))
    yield Twin("types", "a caller of Anthropic's", "allowed_callers", [{**tools[at], "allowed_callers": ["code_execution_20260120"]}])
    yield Twin("types", "an option that Responses lacks", "input_examples", [{**tools[at], "input_examples": []}])
    yield Twin("types", "an unknown companion", "tool_searching", [{"type": "tool_searching"}])
    yield Twin("rules", "an empty set of callers", "nobody may call", [{**tools[at], "allowed_callers": []}])
    yield Twin("rules", "code may call and has nothing to run in", "no program tool", [{**tools[at], "allowed_callers": ["programmatic"]}])
    yield Twin("rules", "deferred without a search", "without a search", [{**tools[at], "defer_loading": True}])
    yield Twin("rules", "a name with a space", "the name", changed(tools, at, "name", to="a b"))


def result_twins(append):
    yield Twin("types", "output that is an object", "output", changed(append, 0, "output", to={"a": 1}))
    yield Twin("types", "Chat's id", "tool_call_id", [{**append[0], "tool_call_id": "call_1"}])
    yield Twin("rules", "the item's id for the call's", "not one item", changed(append, 0, "call_id", to="fc_1"))
    yield Twin("types", "a status that is none", "status", [{**append[0], "status": "failed"}])
    yield Twin("rules", "a call unanswered", "not one item", append[1:])
    yield Twin("rules", "no parts", "without parts", changed(append, 0, "output", to=[]))
