"""The official Python client against a running service: it connects in both generations of the protocol, lists and calls.

    client.py BASE_URL AGENT_KEY
"""
import asyncio
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

LEGACY, MODERN = "2025-11-25", "2026-07-28"


async def tools(client):
    """All tools, over the pages."""
    found, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return found


async def use(url, key, mode, spoken):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            assert client.protocol_version == spoken, client.protocol_version
            if mode != MODERN:  # pinned, it asks nothing before its first request
                assert client.server_capabilities.tools.list_changed is False, client.server_capabilities
            if spoken == LEGACY:
                await client.send_ping()
            listed = {tool.name: tool for tool in await tools(client)}
            assert {"calculate", "count_text", "current_time"} <= set(listed), sorted(listed)
            assert listed["calculate"].input_schema["type"] == "object", listed["calculate"]

            sum_ = await client.call_tool("calculate", {"expression": "6*7"})
            assert not sum_.is_error and "42" in sum_.content[0].text, sum_
            assert sum_.structured_content is not None, sum_
            wrong = await client.call_tool("calculate", {"expression": 42})
            assert wrong.is_error and "expression" in wrong.content[0].text, wrong
            absent = await client.call_tool("calculate")
            assert absent.is_error and "expression" in absent.content[0].text, absent
            try:
                await client.call_tool("no_such_tool", {})
            except MCPError as why:
                assert why.code == -32602 and "no_such_tool" in why.message, why
            else:
                raise AssertionError("a tool that is not there was called")
    print(f"python client, mode {mode}: {spoken}, {len(listed)} tools")


async def main(base_url, key):
    for mode, spoken in [("legacy", LEGACY), ("auto", MODERN), (MODERN, MODERN)]:
        await use(f"{base_url}/mcp", key, mode, spoken)


asyncio.run(main(*sys.argv[1:]))
