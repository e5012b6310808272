"""A webhook in Python: it takes what Toolhook signed, and does each thing once.

    SIGNING_SECRET=whsec_… PORT=9000 python receiver.py
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

MOST_BYTES = 2 * 1024 * 1024
MOST_REMEMBERED = 10_000

signature = Webhook(os.environ["SIGNING_SECRET"])
# What each call was answered, by its id. Yours belongs into your database, in the transaction that does the work.
answered: dict[str, dict] = {}
turn = threading.Lock()
notes: list[str] = []


def run(call: dict) -> dict:
    """The tool itself: keeps a note."""
    text = call["input"].get("text")
    if not isinstance(text, str):
        return {"error": "There is no text to note. Send one as `text`."}
    notes.append(text)
    return {"text": f"Noted: {text}", "data": {"notes": len(notes)}}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MOST_BYTES:
            self.close_connection = True
            return self.answer(413, {"error": "The request is too large."})
        body = self.rfile.read(length)  # the bytes as they came: they are what is signed
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            event = signature.verify(body, headers)  # also refuses what is more than five minutes off
        except (WebhookVerificationError, ValueError):
            return self.answer(401, {"error": "The signature does not fit."})
        with turn:
            known = answered.get(headers["webhook-id"])
            if known is None:
                known = answered[headers["webhook-id"]] = run(event["data"])
                if len(answered) > MOST_REMEMBERED:
                    del answered[next(iter(answered))]
        self.answer(200, known)

    def answer(self, status: int, document: dict):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
