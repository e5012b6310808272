"""Lists in every format, with every option of a list, held against the SDKs' types and the providers' rules."""
import json

from report import require
from sdk import FORMATS

EVERYTHING = {"cache": "1h", "search": "regex", "code_execution": "20260120", "programmatic": "true"}
PLAINEST = [{}, {"caller": "human"}, {"caller": "code_execution"}, {**EVERYTHING, "caller": "human"}]
QUERIES = [
    {"cache": "5m"}, {"cache": "1h"}, {"search": "none"}, {"search": "bm25"}, {"search": "regex"},
    {"code_execution": "20250825"}, {"code_execution": "20260120"}, {"code_execution": "20260521"}, {"programmatic": "true"},
    *PLAINEST, EVERYTHING, {**EVERYTHING, "caller": "code_execution"},
]
HEEDING = {"anthropic", "openai-responses", "bedrock"}  # the formats that know more of a list than who calls
TYPES, RULES, SCHEMAS, COMPLETE, STABLE = "declarations by the SDK's types", "lists by the rules", "schemas by the rules", "no tool is lost", "the same bytes again"


def singles(form, tools):
    """The list, an entry at a time: what is wrong is then named."""
    if form.FORMAT == "gemini":
        return [[{"functionDeclarations": [declaration]}] for declaration in form.declarations(tools)]
    return [[tool] for tool in tools]


def rules(form, tools, query):
    form.rules(tools)
    if query.get("search") != "none" and hasattr(form, "searchable"):
        form.searchable(tools)


def complete(form, answer, wanted):
    """Every tool that was asked for is declared, or left out with a reason."""
    declared = {name for name, _, _ in form.entries(answer["tools"])}
    omitted = {one["name"] for one in answer["omitted"]}
    require(all(one["reason"] for one in answer["omitted"]), "left out without a reason")
    require(declared | omitted == wanted, f"lost or invented: {sorted((declared | omitted) ^ wanted)[:5]}")
    require(not declared & omitted, f"declared and left out: {sorted(declared & omitted)[:5]}")


def same_bytes(one, other):
    require(one == other, "the two lists differ")


class Lists:
    """Checks lists, each declaration once: most options of a list leave most declarations as they are."""

    def __init__(self, report, service):
        self.report, self.service, self.seen = report, service, set()

    def check(self, form, wanted, query, **filters):
        """Lists these tools (bodies) and checks what came."""
        answer = self.service.list(form.FORMAT, **query, **filters)
        said = json.dumps({**query, **filters})
        name = lambda check: f"{form.FORMAT}: {check}"
        self.report.check(name(RULES), said, rules, form, answer["tools"], query)
        self.report.check(name(COMPLETE), said, complete, form, answer, {tool["name"] for tool in wanted if _asked(tool, query)})
        for single in singles(form, answer["tools"]):
            if self._new(form, single):
                self.report.check(name(TYPES), f"{said}: {json.dumps(single)[:300]}", form.types, single)
        for tool, schema, declaration in form.entries(answer["tools"]):
            if self._new(form, [schema, declaration]):
                self.report.check(name(SCHEMAS), tool, form.schema_rules, schema, declaration)
        return answer

    def _new(self, form, value):
        key = form.FORMAT + json.dumps(value)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True


def _asked(tool, query):
    callers = tool.get("allowed_callers")
    if not tool.get("enabled", True):
        return False
    # A set that is empty is said to be left out, whoever asks; the others are filtered by who asks.
    return not callers or query.get("caller") in (None, *callers)


def check_all(report, service, tools, chunk):
    """All tools in chunks, with all options of a list; and each strict tool by itself, where limits for the whole
    request would keep it from being so."""
    lists = Lists(report, service)
    chunks = [tools[at:at + chunk] for at in range(0, len(tools), chunk)]
    for form in FORMATS:
        for query in QUERIES if form.FORMAT in HEEDING else PLAINEST:
            for number, part in enumerate(chunks):
                lists.check(form, part, query, tag=f"chunk-{number}")
        if form.FORMAT == "anthropic":
            for tool in (tool for tool in tools[1:] if tool.get("strict")):
                for query in ({}, EVERYTHING):
                    lists.check(form, [tools[0], tool], query, name=[tools[0]["name"], tool["name"]])
        path = f"/v1/formats/{form.FORMAT}/tools"
        report.check(f"{form.FORMAT}: {STABLE}", path, same_bytes, service.request("GET", path), service.request("GET", path))


def check_many(report, service, tools):
    """More tools than any format takes in one list."""
    lists = Lists(report, service)
    for form in FORMATS:
        answer = lists.check(form, tools, {}, tag="many")
        most = getattr(form, "MOST", len(tools))
        report.check(f"{form.FORMAT}: {COMPLETE}", "as many as go", require, len(form.entries(answer["tools"])) == most, f"not {most} tools")


def twins(report, service, name):
    """Every check of this file, with one thing wrong in what the service answered for a plain tool."""
    for form in FORMATS:
        label = lambda check: f"{form.FORMAT}: {check}"
        answer = service.list(form.FORMAT, name=name)
        for twin in form.list_twins(answer["tools"]):
            check = form.types if twin.check == "types" else lambda tools: rules(form, tools, {})
            report.twin(label(TYPES if twin.check == "types" else RULES), twin.what, twin.reason, check, twin.payload)
        for twin in form.schema_twins():
            report.twin(label(SCHEMAS), twin.what, twin.reason, form.schema_rules, twin.schema, {"strict": twin.strict})
        report.twin(label(COMPLETE), "a tool that is nowhere", "lost or invented", complete, form, answer, {name, "nowhere"})
        report.twin(label(STABLE), "a list in another order", "differ", same_bytes, "ab", "ba")
