"""OpenAI Chat Completions."""
import json

from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from report import require
from sdk import openai_chat as known
from sdk.typed import conforms

from .model import last_words, next_calls

PATH = "/chat/completions"


def validate(body):
    conforms(CompletionCreateParamsNonStreaming, body)
    require(body.get("tools") != [], "tools is empty")
    known.rules(body.get("tools", []))
    messages = body["messages"]
    for at, message in enumerate(messages):
        calls = [call["id"] for call in message.get("tool_calls") or []]
        answers = [one.get("tool_call_id") for one in messages[at + 1:at + 1 + len(calls)] if one["role"] == "tool"]
        require(sorted(calls) == sorted(answers), f"message {at}: its calls {calls} are followed by answers to {answers}")
        require(message["role"] != "tool" or messages[at - 1]["role"] in ("tool", "assistant"), f"message {at}: answers nothing")


def reply(body):
    history = body["messages"]
    called = [call["function"]["name"] for message in history for call in message.get("tool_calls") or []]
    calls = next_calls([(tool["function"]["name"], tool["function"]["parameters"]) for tool in body.get("tools", [])], called)
    message = {"role": "assistant", "content": None, "refusal": None}
    if calls:
        message["tool_calls"] = [{"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}} for call, name, arguments in calls]
    else:
        message["content"] = last_words([one["content"] for one in history if one["role"] == "tool"])
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "usage": {
        "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}, "choices": [{
            "index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}]}
