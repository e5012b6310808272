#!/usr/bin/env python3
"""A model on loopback: OpenAI's, Anthropic's and Google's APIs as far as one agent turn needs them.

It holds every request against the provider's own types and rules and refuses it with 400 as the provider would. It calls
each declared tool once: all but the last in one reply, the last in the next. Then it says what the tools said.

    fake_provider.py --port 8090
"""
import argparse
import http.server
import json
import threading
from collections import Counter

from fake import ALL
from report import reason


class FakeProvider:
    """Serves in the background. `served` counts what was accepted, by the API's path; `refusals` says why the rest was not."""

    def __init__(self, port=0):
        self.refusals, self.served = [], Counter()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = fake.answer(self.path.partition("?")[0], body)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.environment = {
            "OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_API_KEY": "none", "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_API_KEY": "none",
            "MODEL": "fake",
        }

    def answer(self, path, body):
        """Status and document for a request."""
        api = next((api for api in ALL if path.endswith(api.PATH)), None)
        if api is None:
            return 404, {"error": {"message": f"there is no {path}", "type": "not_found_error", "code": 404, "status": "NOT_FOUND"}}
        try:
            api.validate(body)
        except Exception as error:
            self.refusals.append(reason(error))
            return 400, {"type": "error", "error": {"message": reason(error), "type": "invalid_request_error", "code": 400, "status": "INVALID_ARGUMENT"}}
        self.served[api.PATH] += 1
        return 200, api.reply(body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8090)
    fake = FakeProvider(parser.parse_args().port)
    print("\n".join(f"export {name}={value}" for name, value in fake.environment.items()), flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
