"""The part of Kubernetes' API server that a lease uses: versions, conflicts, merge patches.

No API server can be installed from Debian or PyPI. This one keeps the rules of the API's concepts
page (optimistic concurrency by `resourceVersion`, JSON merge patch) and checks each object with the
published schema.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gateway.lease.kubernetes_store import ApiServer
from tests.schema_validation import check_manifest
from tests.waiting import PATIENCE

PATH = "/apis/coordination.k8s.io/v1/namespaces/plant/leases"
TOKEN = "token-of-the-account"  # noqa: S105  # of a test
VERSION = "1.29"


class LeaseApi(ThreadingHTTPServer):
    """Leases by name; `refusing` is the status of every answer while it is not 0.

    While it `breaks`, each connection ends in the middle of an answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.leases: dict[str, Any] = {}
        self.version = 0
        self.refusing = 0
        self.breaks = False
        self.lock = threading.Lock()

    def store(self, name: str, lease: dict[str, Any]) -> dict[str, Any]:
        check_manifest(lease, VERSION)
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.leases[name] = lease
        return lease


class _Handler(BaseHTTPRequestHandler):
    server: LeaseApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        self._serve(self._body())

    do_PUT = do_PATCH = do_POST  # noqa: N815  # the names of the base class

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return found

    def _serve(self, body: dict[str, Any]) -> None:
        with self.server.lock:
            status, answer = self._answer(body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[:-1] if self.server.breaks else text)

    def _answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:  # noqa: PLR0911
        api, name = self.server, self.path.removeprefix(PATH).removeprefix("/")
        old = api.leases.get(name)
        if api.refusing:
            return api.refusing, {}
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return 401, {}
        if self.command == "POST":
            name = body["metadata"]["name"]
            return (409, {}) if name in api.leases else (201, api.store(name, body))
        if not self.path.startswith(PATH) or old is None:
            return 404, {}
        if self.command == "GET":
            return 200, old
        if self.command == "PUT":
            if body["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
                return 409, {}
            return 200, api.store(name, body)
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        return 200, api.store(name, _merged(json.loads(json.dumps(old)), body))


def _merged(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for key, value in patch.items():
        old[key] = _merged(old.get(key, {}), value) if isinstance(value, dict) else value
    return old


@contextmanager
def lease_api(folder: Path) -> Iterator[tuple[LeaseApi, ApiServer]]:
    """Serve the API, with the account of a pod in `folder`."""
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "namespace").write_text("plant")
    api = LeaseApi()
    thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api, ApiServer(f"http://127.0.0.1:{api.server_port}", folder, PATIENCE)
    finally:
        api.shutdown()
        api.server_close()
        thread.join()
