#!/usr/bin/env python3
"""Holds what a running Toolhook answers against the providers' own SDKs, offline: no provider is called.

    run.py --base-url http://127.0.0.1:8080 --operator-key thk_…

Makes tenants of its own. The service has to let webhooks on loopback through, as `toolhook dev` does.
"""
import argparse
import sys
import time

import lists
import oddities
import results
import turns
from corpus.answers import ANSWERS
from corpus.handed import handed_tools
from corpus.options import option_tools, schema_tools, tool
from corpus.schemas import SCHEMAS
from receiver import Receiver
from report import Report
from service import new_tenant

CHUNK = 20  # as many strict tools as Anthropic takes in one request


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--operator-key", required=True)
    options = parser.parse_args()
    report, receiver = Report(), Receiver({name: answer for name, (answer, _) in ANSWERS.items()})
    clock = Clock()

    service = tenant(options, receiver, "corpus")
    tools = [*schema_tools(), *option_tools(), *taken(service, handed_tools())]
    create(service, [{**body, "tags": [*body.get("tags", []), f"chunk-{number // CHUNK}"]} for number, body in enumerate(tools)])
    clock.took(f"{len(tools)} tools made")
    lists.check_all(report, service, tools, CHUNK)
    clock.took("lists")
    results.check_way_back(report, service, receiver, tools, CHUNK)
    clock.took("arguments")

    service = tenant(options, receiver, "many")
    many = [tool(f"tool_{number:03}", SCHEMAS["plain"]) for number in range(520)]
    create(service, [{**body, "tags": ["many"]} for body in many])
    lists.check_many(report, service, many)
    clock.took("long lists")

    service = tenant(options, receiver, "results")
    create(service, [tool(name, {"type": "object"}, **expected.options) for name, (_, expected) in ANSWERS.items()])
    create(service, [tool("needs_city", SCHEMAS["plain"]), tool("is_off", {}, enabled=False), tool("only_code", {}, allowed_callers=["code_execution"])])
    results.check_answers(report, service)
    results.check_replies(report, service)
    oddities.check_odd(report, service)
    clock.took("results")

    turns_receiver = Receiver(turns.ANSWERS)
    turns_service = tenant(options, turns_receiver, "turns")
    create(turns_service, [{**body, "tags": ["mine"]} for body in turns.TOOLS])
    fake = turns.check_turns(report, turns_service)
    clock.took("clients")

    print("What every check refuses:")
    lists.twins(report, service, "needs_city")
    results.twins(report, service)
    oddities.twins(report)
    turns.twins(report, fake, turns_service)
    return report.close()


def tenant(options, receiver, purpose):
    service = new_tenant(options.base_url, options.operator_key, purpose)
    service.expect("POST", "/v1/handlers", {"name": "hook", "kind": "webhook", "url": receiver.url, "max_attempts": 1})
    return service


def create(service, bodies):
    for body in bodies:
        service.expect("POST", "/v1/tools", body)


def taken(service, bodies):
    """Those that the service takes: a case may be about a tool that is refused when it is written."""
    for body in bodies:
        status, answer = service.request("POST", "/v1/tools", body)
        if status == 201:
            service.expect("DELETE", f"/v1/tools/{body['name']}")
            yield body
        else:
            print(f"not taken: {body['name']}: {answer[:200]}")


class Clock:
    """Says how long the parts took."""

    def __init__(self):
        self.since = time.monotonic()

    def took(self, what):
        now = time.monotonic()
        print(f"{what} ({now - self.since:.1f} s)", flush=True)
        self.since = now


if __name__ == "__main__":
    sys.exit(main())
