"""The other direction: each provider's own client runs a whole agent turn, as the examples show it, against a model on loopback."""
import copy
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from corpus.options import tool
from corpus.schemas import closed, record, text
from fake_provider import FakeProvider
from report import Refused, require

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
AGENTS = {"openai_chat": "/v1/chat/completions", "openai_responses": "/v1/responses", "anthropic_messages": "/v1/messages",
          "gemini": "/v1beta/models/fake:generateContent"}
ANSWERS = {
    "get_weather": (200, "application/json", '{"celsius": 22, "city": "Zürich"}'.encode()),
    "find_order": (404, "application/json", b'{"error": "no such order"}'),
    "ping": (200, "text/plain", b"pong"),
    "search": (200, "application/json", b'["first", "second"]'),
}
TOOLS = [
    tool("get_weather", closed(["city"], city=text()), result_type="structured"),
    tool("find_order", record(["order id"], **{"order id": text(), "filter[state]": text()})),
    tool("ping", {"type": "object"}),
    tool("search", record(["q"], q=text(), limit={"type": "integer", "minimum": 1}), strict=True),
]
RUNS = "the client runs a whole turn"


def check_turns(report, service):
    """The tenant has the tools above. A key of the role that an agent has is all that an example gets."""
    key = service.expect("POST", "/v1/keys", {"role": "agent", "name": "examples"})["key"]
    fake = FakeProvider()
    for agent, ended in run_all(fake, service.base_url, key):
        report.check(f"{agent}: {RUNS}", agent, complete, *ended)
        count = sum(count for path, count in fake.served.items() if AGENTS[agent].endswith(path))
        report.check(f"{agent}: {RUNS}", "three requests", require, count == 3, f"{count} requests were accepted, not 3")
        report.check(f"{agent}: {RUNS}", "none refused", require, not fake.refusals, f"refused: {fake.refusals}")
    return fake


def run_all(fake, url, key):
    """Most of an example's time goes into its imports, so they run beside each other."""
    with ThreadPoolExecutor(len(AGENTS)) as pool:
        return list(zip(AGENTS, pool.map(lambda agent: run(agent, fake, url, key), AGENTS)))


def run(agent, fake, url, key):
    """Exit code, output and errors of an example."""
    environment = {"PATH": os.environ.get("PATH", ""), "TOOLHOOK_URL": url, "TOOLHOOK_KEY": key, "PYTHONIOENCODING": "utf-8", **fake.environment}
    done = subprocess.run([sys.executable, os.path.join(EXAMPLES, f"{agent}.py")], env=environment, capture_output=True, text=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout, done.stderr


def complete(code, output, errors):
    require(code == 0, f"ended with {code}: {errors[-500:]}")
    for said in ("[get_weather: succeeded]", "[find_order: failed]", "[ping: succeeded]", "[search: succeeded]"):
        require(said in output, f"{said} is not in {output}")
    last = output.strip().splitlines()[-1]
    for said in ("Zürich", "no such order", "pong", "second"):
        require(last.startswith("The tools said:") and said in last, f"{said} is not in {last}")


def twins(report, fake, service):
    """The fake model refuses what a provider would, and an example says when something is wrong."""
    for agent, ended in run_all(fake, service.base_url, "thk_none"):
        report.twin(f"{agent}: {RUNS}", "a key that is none", "401", complete, *ended)
    for agent, path in AGENTS.items():
        for what, expected, body in refused_requests(agent):
            report.twin(f"{agent}: {RUNS}", what, expected, ask, fake.url + path, body)


def ask(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as error:
        raise Refused(f"{error.code} {json.loads(error.read())['error']['message']}") from None


def refused_requests(agent):
    """Requests with one thing wrong."""
    user = {"role": "user", "content": "Hello"}
    if agent == "openai_chat":
        call = {"id": "call_1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
        yield "a call without an answer", "are followed by answers", {"model": "m", "messages": [user, {"role": "assistant", "tool_calls": [call]}, user]}
        yield "a tool in the flat form", "400", {"model": "m", "messages": [user], "tools": [{"type": "function", "name": "ping", "parameters": {}}]}
        yield "no tools in the list", "tools is empty", {"model": "m", "messages": [user], "tools": []}
    elif agent == "openai_responses":
        call = {"type": "function_call", "call_id": "call_1", "name": "ping", "arguments": "{}"}
        yield "a call without an answer", "no answer to", {"model": "m", "input": [user, call]}
        yield "an answer to nothing", "answers no open call", {"model": "m", "input": [user, {"type": "function_call_output", "call_id": "call_1", "output": ""}]}
        yield "an output that is an object", "output", {"model": "m", "input": [user, call, {"type": "function_call_output", "call_id": "call_1", "output": {}}]}
    elif agent == "anthropic_messages":
        asked = {"model": "m", "max_tokens": 1, "messages": [user, {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {}}]}]}
        yield "a call without a result", "are followed by results", asked
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "pong"}
        late = copy.deepcopy(asked)
        late["messages"].append({"role": "user", "content": [{"type": "text", "text": "Here:"}, result]})
        yield "text before the results", "before the results", late
    else:
        call = {"functionCall": {"name": "ping"}, "thoughtSignature": "c2lnbmVk"}
        response = {"functionResponse": {"name": "ping", "response": {"output": "pong"}}}
        contents = [{"role": "user", "parts": [{"text": "Hello"}]}, {"role": "model", "parts": [call]}]
        yield "a call without a response", "are followed by responses", {"contents": contents}
        unsigned = copy.deepcopy(contents)
        del unsigned[1]["parts"][0]["thoughtSignature"]
        yield "a call without its signature", "signature is missing", {"contents": [*unsigned, {"role": "user", "parts": [response]}]}
