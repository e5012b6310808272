"""Holds a sample receiver to what docs/webhooks.md asks of one: it answers the service, once for each call, and refuses the rest.

    python check.py BASE_URL KEY NAME COMMAND…

The command starts the receiver on the port and with the secret of its environment.
"""

import base64
import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

BASE_URL, KEY, NAME, *COMMAND = sys.argv[1:]


def ask(method, url, body=None, headers=()):
    """A request; gives status and JSON."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, dict(headers) | {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def service(method, path, body=None):
    status, answer = ask(method, BASE_URL + path, body, {"authorization": f"Bearer {KEY}"})
    assert status in (200, 201), (method, path, status, answer)
    return answer


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Receiver:
    """The sample as a process."""

    def __init__(self, port, secret):
        self.url = f"http://127.0.0.1:{port}/"
        self.process = subprocess.Popen(COMMAND, env=os.environ | {"PORT": str(port), "SIGNING_SECRET": secret})
        for _ in range(300):
            assert self.process.poll() is None, "it ended by itself"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("it does not listen")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def signature(secret, call, timestamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{call}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(mac).decode()


def deliver(receiver, secret, call, text="direct", age=0, send=None, leave_out=None, signed=None):
    """A delivery as the service would make it, or nearly so."""
    body = json.dumps({"type": "tool.call", "data": {"id": call, "input": {"text": text}}}).encode()
    timestamp = str(int(time.time()) - age)
    signed = signed or signature(secret, call, timestamp, body)
    headers = {"webhook-id": call, "webhook-timestamp": timestamp, "webhook-signature": signed}
    headers.pop(leave_out, None)
    return ask("POST", receiver.url, send or body, headers)


def call(text):
    answer = service("POST", f"/v1/tools/{NAME}/calls", {"input": {"text": text}})
    assert answer["status"] == "succeeded", answer
    assert answer["result"]["text"] == f"Noted: {text}", answer
    return answer["result"]["data"]["notes"]


def refuses(receiver, secret):
    """Everything that did not come from the service just so."""
    other = "whsec_" + base64.b64encode(b"another secret of thirty-two byte").decode()
    genuine = json.dumps({"type": "tool.call", "data": {"id": "r", "input": {"text": "direct"}}}).encode()
    now = str(int(time.time()))
    for what, status in {
        "forged": deliver(receiver, other, "r1")[0],
        "altered": deliver(receiver, secret, "r2", send=genuine.replace(b"direct", b"altered"))[0],
        "written anew": deliver(receiver, secret, "r3", send=json.dumps(json.loads(genuine), indent=1).encode())[0],
        "six minutes old": deliver(receiver, secret, "r4", age=360)[0],
        "six minutes early": deliver(receiver, secret, "r5", age=-360)[0],
        "of another id": deliver(receiver, secret, "r6", signed=signature(secret, "r7", now, genuine))[0],
        "without a signature": deliver(receiver, secret, "r8", leave_out="webhook-signature")[0],
        "without a timestamp": deliver(receiver, secret, "r9", leave_out="webhook-timestamp")[0],
        "without an id": deliver(receiver, secret, "r10", leave_out="webhook-id")[0],
        "of an unknown version": deliver(receiver, secret, "r11", signed="v9,AAAA")[0],
    }.items():
        assert status in (400, 401), f"{what}: {status}"


def main():
    port = free_port()
    handler = service("POST", "/v1/handlers", {"name": NAME, "kind": "webhook", "url": f"http://127.0.0.1:{port}/"})
    secret = handler["signing_secret"]
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    service("PUT", f"/v1/tools/{NAME}", {"description": "Keeps a note", "handler": NAME, "input_schema": schema})
    receiver = Receiver(port, secret)
    try:
        assert call("ü / <b> 1.50") == 1
        refuses(receiver, secret)
        assert deliver(receiver, secret, "once") == (200, {"text": "Noted: direct", "data": {"notes": 2}}), "nothing was noted before"
        assert deliver(receiver, secret, "once", age=200)[1]["data"]["notes"] == 2, "the same call is answered as before"
        assert deliver(receiver, secret, "twice")[1]["data"]["notes"] == 3
        failed = service("POST", f"/v1/tools/{NAME}/calls", {"input": {}})
        assert failed["status"] == "failed" and "no text" in failed["error"]["message"], failed
        # After a rotation the receiver's old secret still fits, and so does the new one.
        fresh = service("POST", f"/v1/handlers/{NAME}/rotate-secret")["signing_secret"]
        assert fresh != secret
        assert call("with the old secret") == 4
        receiver.stop()
        receiver = Receiver(port, fresh)
        assert call("with the new secret") == 1
        assert deliver(receiver, secret, "late")[0] in (400, 401), "the old secret alone does not fit any more"
    finally:
        receiver.stop()


main()
