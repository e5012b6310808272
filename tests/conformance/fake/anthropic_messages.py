"""Anthropic Messages."""
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from report import require
from sdk import anthropic_messages as known
from sdk.typed import conforms

from .model import last_words, next_calls

PATH = "/v1/messages"


def validate(body):
    conforms(MessageCreateParamsNonStreaming, body)
    known.rules(body.get("tools", []))
    messages = body["messages"]
    for at, message in enumerate(messages):
        calls = [block["id"] for block in _blocks(message, "tool_use")]
        after = messages[at + 1] if at + 1 < len(messages) else {"role": "user", "content": []}
        answers = [block["tool_use_id"] for block in _blocks(after, "tool_result")]
        if message["role"] == "assistant":
            require(sorted(calls) == sorted(answers), f"message {at}: its calls {calls} are followed by results for {answers}")
            first = [block["type"] for block in after["content"][:len(answers)]] if answers else []
            require(set(first) <= {"tool_result"}, f"message {at + 1}: has something before the results")


def _blocks(message, kind):
    return [block for block in message["content"] if isinstance(block, dict) and block["type"] == kind]


def reply(body):
    history = [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]]
    called = [block["name"] for block in history if block["type"] == "tool_use"]
    calls = next_calls([(name, schema) for name, schema, _ in known.entries(body.get("tools", []))], called)
    if calls:
        content = [{"type": "text", "text": "I look."}, *({"type": "tool_use", "id": call, "name": name, "input": arguments} for call, name, arguments in calls)]
    else:
        content = [{"type": "text", "text": last_words([block.get("content", "") for block in history if block["type"] == "tool_result"])}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
