"""The webhooks of the tools under test, on loopback. The tool's name says what it answers."""
import http.server
import json
import threading


class Receiver:
    """Answers by tool, and remembers the arguments that each call brought."""

    def __init__(self, answers):
        self.arguments = {}
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["data"]
                receiver.arguments[data["id"]] = data["input"]
                status, kind, body = answers.get(data["tool"], (200, "application/json", b'{"ok": true}'))
                self.send_response(status)
                if kind:
                    self.send_header("Content-Type", kind)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(b"" if status == 204 else body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
