"""Google Gemini generateContent."""
from google.genai import types as genai

from report import require
from sdk import gemini as known

from .model import last_words, next_calls

PATH = ":generateContent"
SIGNATURE = "c2lnbmVk"  # stands on the first call of a reply, and has to come back


def validate(body):
    for content in body["contents"]:
        known.as_dumped(genai.Content, content)
    known.types(_tools(body))
    known.rules(_tools(body))
    contents = body["contents"]
    for at, content in enumerate(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        after = contents[at + 1]["parts"] if at + 1 < len(contents) else []
        answers = [part["functionResponse"]["name"] for part in after if "functionResponse" in part]
        if content["role"] == "model":
            names = [part["functionCall"]["name"] for part in calls]
            require(names == answers, f"content {at}: its calls {names} are followed by responses of {answers}")
            require(not calls or calls[0].get("thoughtSignature") == SIGNATURE, f"content {at}: the thought signature is missing")


def _tools(body):
    """The client writes a few keys in snake_case, which the service reads as well."""
    in_camel = {"parameters_json_schema": "parametersJsonSchema", "response_json_schema": "responseJsonSchema"}
    return [{**tool, "functionDeclarations": [{in_camel.get(key, key): value for key, value in one.items()} for one in tool["functionDeclarations"]]}
            for tool in body.get("tools", [])]


def reply(body):
    parts = [part for content in body["contents"] for part in content["parts"]]
    called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    calls = next_calls([(name, schema) for name, schema, _ in known.entries(_tools(body))], called)
    if calls:
        said = [{"functionCall": {"name": name, **({"args": arguments} if arguments else {})}} for _, name, arguments in calls]
        said[0]["thoughtSignature"] = SIGNATURE
    else:
        responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        said = [{"text": last_words([one.get("output", one.get("error")) for one in responses])}]
    return {"candidates": [{"content": {"role": "model", "parts": said}, "finishReason": "STOP", "index": 0}], "modelVersion": "fake",
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
