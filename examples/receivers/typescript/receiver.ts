// A webhook in TypeScript: it takes what Toolhook signed, and does each thing once.
//
//     npm ci && SIGNING_SECRET=whsec_… PORT=9000 npm start

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";

const MOST_BYTES = 2 * 1024 * 1024;
const MOST_REMEMBERED = 10_000;

type Call = { input: Record<string, unknown>; context: Record<string, unknown>; deadline: string };
type Answer = { text: string; data?: object } | { error: string };

const secret = process.env.SIGNING_SECRET;
if (!secret) throw new Error("SIGNING_SECRET is not set");
const signature = new Webhook(secret);
// What each call was answered, by its id. Yours belongs into your database, in the transaction that does the work.
const answered = new Map<string, Answer>();
const notes: string[] = [];

/** The tool itself: keeps a note. */
function run(call: Call): Answer {
  const text = call.input.text;
  if (typeof text !== "string") return { error: "There is no text to note. Send one as `text`." };
  notes.push(text);
  return { text: `Noted: ${text}`, data: { notes: notes.length } };
}

/** The bytes as they came: they are what is signed. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await bodyOf(request);
  if (body === undefined) return send(response, 413, { error: "The request is too large." });
  const headers = request.headers as Record<string, string>;
  let event: { data: Call };
  try {
    event = signature.verify(body, headers) as { data: Call }; // also refuses what is more than five minutes off
  } catch {
    return send(response, 401, { error: "The signature does not fit." });
  }
  const id = headers["webhook-id"];
  let known = answered.get(id);
  if (known === undefined) {
    known = run(event.data);
    answered.set(id, known);
    const [oldest] = answered.keys();
    if (answered.size > MOST_REMEMBERED) answered.delete(oldest);
  }
  send(response, 200, known);
}

function send(response: ServerResponse, status: number, document: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));
}

createServer((request, response) => {
  receive(request, response).catch(() => response.destroy());
}).listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
