// The official TypeScript clients against a running service: the one that shakes hands, and its successor in both generations of
// the protocol. They connect, list and call.
//
//     node client.mjs BASE_URL AGENT_KEY
import assert from "node:assert/strict";
import { Client as HandshakeClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as HandshakeTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [baseUrl, key] = process.argv.slice(2);
const about = { name: "conformance", version: "1.0.0" };
const headers = { Authorization: `Bearer ${key}` };

async function tools(client) {
  const found = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    found.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

async function use(label, client, Transport, spoken) {
  const transport = new Transport(new URL(`${baseUrl}/mcp`), { requestInit: { headers } });
  await client.connect(transport);
  if (spoken !== undefined) assert.equal(client.getNegotiatedProtocolVersion(), spoken);
  assert.equal(client.getServerVersion()?.name, "toolhook");
  assert.equal(client.getServerCapabilities()?.tools?.listChanged, false);
  const listed = await tools(client);
  const names = listed.map((tool) => tool.name);
  for (const name of ["calculate", "count_text", "current_time"]) assert.ok(names.includes(name), `${name} is not in ${names}`);

  const sum = await client.callTool({ name: "calculate", arguments: { expression: "6*7" } });
  assert.ok(!sum.isError && sum.content[0].text.includes("42") && sum.structuredContent, JSON.stringify(sum));
  const wrong = await client.callTool({ name: "calculate", arguments: { expression: 42 } });
  assert.ok(wrong.isError && wrong.content[0].text.includes("expression"), JSON.stringify(wrong));
  const absent = await client.callTool({ name: "calculate" });
  assert.ok(absent.isError && absent.content[0].text.includes("expression"), JSON.stringify(absent));
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), (why) => why.code === -32602 && /no_such_tool/.test(why.message));
  await client.close();
  console.log(`${label}: ${spoken ?? transport.protocolVersion}, ${listed.length} tools`);
}

await use("typescript sdk 1", new HandshakeClient(about), HandshakeTransport);
for (const [mode, spoken] of [["legacy", "2025-11-25"], ["auto", "2026-07-28"], [{ pin: "2026-07-28" }, "2026-07-28"]]) {
  const client = new Client(about, { versionNegotiation: { mode } });
  await use(`typescript client 2, mode ${JSON.stringify(mode)}`, client, StreamableHTTPClientTransport, spoken);
}
