#!/usr/bin/env python3
"""A webhook on port 9000 that answers for the tool get_weather. Python's standard library only.

    SIGNING_SECRET=whsec_… python3 examples/weather.py

With SIGNING_SECRET it takes nothing that Toolhook did not sign (Standard Webhooks), and nothing older than five minutes.
"""
import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("SIGNING_SECRET", "")


def signed_by_toolhook(headers, body):
    sent_at = headers.get("webhook-timestamp", "")
    if not sent_at.isdigit() or abs(time.time() - int(sent_at)) > 300:
        return False
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id', '')}.{sent_at}.".encode() + body  # the very bytes that came, never JSON written anew
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = [part.removeprefix("v1,") for part in headers.get("webhook-signature", "").split()]
    return any(hmac.compare_digest(expected, one) for one in given)


class Weather(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if SECRET and not signed_by_toolhook(self.headers, body):
            return self.answer(401, {"error": "the signature does not fit"})
        call = json.loads(body)["data"]
        city = call["input"]["city"]
        if city == "Atlantis":
            return self.answer(404, {"error": f"There is no weather for {city}: it sank."})
        self.answer(200, {"text": f"22°C and clear in {city}", "data": {"celsius": 22, "sky": "clear"}})

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 9000), Weather).serve_forever()
