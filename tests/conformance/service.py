"""The service under test, over HTTP, for one tenant of its own."""
import http.client
import json
import threading
import urllib.parse
import uuid


class Unexpected(Exception):
    """The service answered what the run cannot go on with."""


class Service:
    """Speaks for one key; an operator's key names its tenant. Each thread keeps a connection."""

    def __init__(self, base_url, key, tenant=None):
        self.base_url, self.key, self.tenant = base_url.rstrip("/"), key, tenant
        self._local = threading.local()

    def request(self, method, path, body=None):
        """Status and text of the answer."""
        headers = {"Authorization": f"Bearer {self.key}"}
        if self.tenant:
            headers["Toolhook-Tenant"] = self.tenant
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        for last in (False, True):
            connection = self._connection()
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except (http.client.HTTPException, ConnectionError):
                self._local.connection = None  # an idle connection may have been closed
                if last:
                    raise

    def _connection(self):
        if getattr(self._local, "connection", None) is None:
            self._local.connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.base_url).netloc, timeout=120)
        return self._local.connection

    def expect(self, method, path, body=None):
        """The answer's JSON; anything but 2xx ends the run."""
        status, text = self.request(method, path, body)
        if not 200 <= status < 300:
            raise Unexpected(f"{method} {path}: {status} {text[:1000]}")
        return json.loads(text) if text else None

    def list(self, form, **query):
        """A tool list in one format."""
        pairs = [(key, value) for key, values in query.items() for value in (values if isinstance(values, list) else [values])]
        return self.expect("GET", f"/v1/formats/{form}/tools?{urllib.parse.urlencode(pairs)}")

    def run(self, form, reply):
        """What to append for a model's reply, and the calls."""
        return self.expect("POST", f"/v1/formats/{form}/calls", {"reply": reply})


def new_tenant(base_url, operator_key, purpose):
    """An operator's service for a tenant that nobody else uses."""
    name = f"conformance-{purpose}-{uuid.uuid4().hex[:8]}"
    service = Service(base_url, operator_key, name)
    service.expect("PUT", f"/v1/tenants/{name}", {"limits": {"tools": 5000}})
    return service
