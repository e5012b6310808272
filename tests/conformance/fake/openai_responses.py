"""OpenAI Responses."""
import json

from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from report import require
from sdk import openai_responses as known
from sdk.typed import conforms

from .model import last_words, next_calls

PATH = "/responses"


def validate(body):
    conforms(ResponseCreateParamsNonStreaming, body)
    require(body.get("tools") != [], "tools is empty")
    known.rules(body.get("tools", []))
    open_calls = []
    for at, item in enumerate(_items(body)):
        if item.get("type") == "function_call":
            open_calls.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            require(item["call_id"] in open_calls, f"item {at}: answers no open call")
            open_calls.remove(item["call_id"])
    require(not open_calls, f"no answer to {open_calls}")


def _items(body):
    return [] if isinstance(body["input"], str) else body["input"]


def reply(body):
    called = [item["name"] for item in _items(body) if item.get("type") == "function_call"]
    calls = next_calls([(name, schema) for name, schema, _ in known.entries(body.get("tools", []))], called)
    if calls:
        output = [{"type": "reasoning", "id": f"rs_{len(called)}", "summary": []}]
        output += [{"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
                   for call, name, arguments in calls]
    else:
        text = last_words([item["output"] for item in _items(body) if item.get("type") == "function_call_output"])
        output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}]
    return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": body["model"], "output": output,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools", []), "error": None, "incomplete_details": None}
