"""Replies that are not quite what the documentation shows: cut off, without calls, without arguments, called by code."""
from corpus.answers import OBJECT, Expected
from report import require
from results import check_append, told
from sdk import FORMATS
from sdk.shape import Seen

FORMAT = {form.FORMAT: form for form in FORMATS}
ODD, ECHO, QUIET = "odd replies are answered", "what the provider wants back goes back", "a reply without calls appends nothing"
OK, CUT = Expected(value=OBJECT), Expected(error="cut off")
PROGRAM = {"type": "program", "caller_id": "call_p"}


def chat(*arguments, reason="tool_calls"):
    calls = [{"id": f"call_{number}", "type": "function", "function": {"name": "object", "arguments": one}} for number, one in enumerate(arguments)]
    return {"choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None, "tool_calls": calls}}]}


def cut(form, path, reason):
    """The format's own reply, with the reason to stop of one that ran out of tokens."""
    reply = next(iter(FORMAT[form].replies([("call00001", "object", {})]).values()))
    place = reply
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = reason
    return reply


def check_odd(report, service):
    by_code = {"type": "tool_use", "id": "toolu_1", "name": "picture_png", "input": {}, "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
    program = {"type": "function_call", "call_id": "call_1", "name": "object", "arguments": "{}", "namespace": "object", "caller": PROGRAM}
    incomplete = cut("openai-responses", ["status"], "incomplete") | {"incomplete_details": {"reason": "max_output_tokens"}}
    for form, what, reply, expected in [
        ("openai-chat", "no arguments in any form", chat("{}", "", " ", None, {}), [OK] * 5),
        ("openai-chat", "arguments that are no object", chat("[1]", "5", '{"a":', '{"a":1}{"b":2}', '{"a":1,"a":2}', '{"a":NaN}'), [Expected(error="")] * 6),
        ("openai-chat", "cut off", chat("{}", reason="length"), [CUT]),
        ("openai-responses", "cut off", incomplete, [CUT]),
        ("anthropic", "cut off", cut("anthropic", ["stop_reason"], "max_tokens"), [CUT]),
        ("gemini", "cut off", cut("gemini", ["candidates", 0, "finish_reason"], "MAX_TOKENS"), [CUT]),
        ("bedrock", "cut off", cut("bedrock", ["stopReason"], "max_tokens"), [CUT]),
        ("cohere", "cut off", cut("cohere", ["finish_reason"], "MAX_TOKENS"), [CUT]),
        ("openai-responses", "called by a program", [program], [OK]),
        ("anthropic", "a picture for code", [by_code], [Expected(text="[a picture of type image/png, 69 bytes]")]),
        ("gemini", "a call without arguments and id", {"functionCall": {"name": "object"}}, [OK]),
        ("mcp", "a call without arguments", {"method": "tools/call", "id": 7, "params": {"name": "object"}}, [OK]),
    ]:
        append, form = service.run(form, reply)["append"], FORMAT[form]
        ids = [one.id for one in form.read(append)]
        check_append(report, form, append, ids, what)
        for seen, one in zip(form.read(append), expected, strict=True):
            report.check(f"{form.FORMAT}: {ODD}", what, told, seen, one)
        if what == "called by a program":
            report.check(f"openai-responses: {ECHO}", what, echoes, append[0])
    for form, reply in QUIET_REPLIES.items():
        report.check(f"{form}: {QUIET}", form, quiet, service.run(form, reply))


QUIET_REPLIES = {
    "openai-chat": {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello.", "tool_calls": None}}]},
    "openai-responses": {"output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]}]},
    "anthropic": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]},
    "bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}}, "stopReason": "end_turn"},
    "cohere": {"finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}},
    "mcp": [],
    "toolhook": [],
}


def quiet(answer):
    require(answer == {"append": [], "calls": []}, f"something: {answer}")


def echoes(item):
    for key, value in {"caller": PROGRAM, "namespace": "object"}.items():
        require(item.get(key) == value, f"{key} is not echoed")


def twins(report):
    for form in (name for name in QUIET_REPLIES if name != "toolhook"):
        report.twin(f"{form}: {ODD}", "a success where an error is due", "no error", told, Seen(None, None, "fine"), CUT)
    for form in QUIET_REPLIES:
        report.twin(f"{form}: {QUIET}", "a message", "something", quiet, {"append": [{}], "calls": []})
    report.twin(f"openai-responses: {ECHO}", "no caller", "caller is not echoed", echoes, {"call_id": "call_1"})
    report.twin(f"openai-responses: {ECHO}", "no namespace", "namespace is not echoed", echoes, {"call_id": "call_1", "caller": PROGRAM})
