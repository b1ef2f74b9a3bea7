"""A lease as an object of Kubernetes: `Lease` of `coordination.k8s.io/v1`.

Its number is `spec.leaseTransitions`; each change bears the `resourceVersion` that was read, so
that the API server refuses one of two writers (409 Conflict). An empty `holderIdentity` is a lease
that was given away. The fields: https://kubernetes.io/docs/reference/kubernetes-api/ (Lease v1).

Four requests need no client library: the official one weighs 30 MB, with 700 modules.
"""

from __future__ import annotations

import json
import os
import ssl
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from gateway.lease.lease import NO_RECORD, LeaseError, Record

Json: TypeAlias = dict[str, Any]
NO_NOTES: Final[Mapping[str, str]] = {}

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
STANDBY: Final = "standby.gateway/"  # with the name of an instance: an annotation of the lease
WANTED: Final = "gateway/handover"
MEMORY: Final = "gateway/memory"  # compressed, in base64
MAX_MEMORY: Final = 200_000  # characters of it; the API server takes 262,144 of all annotations
MARK_EVERY: Final = 3  # looks; each mark of a standby is a write for the API server
ATTEMPTS: Final = 3  # of a change that meets another
REASONS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "its token was refused; see the service account of the pod",
    HTTPStatus.FORBIDDEN: "not allowed; its role needs get, create, update and patch of `leases`",
}


@dataclass(frozen=True)
class ApiServer:
    """The API server of the cluster, and the folder with the account of the pod."""

    url: str
    account: Path = ACCOUNT
    timeout: float = 2.0  # seconds for one answer

    @classmethod
    def of_pod(cls) -> ApiServer:
        """Return the server that Kubernetes tells each pod.

        Raises:
            LeaseError: this is no pod.
        """
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
        if not host:
            raise LeaseError("lease: `kind: kubernetes` needs a pod; elsewhere use `kind: file`")
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port or 443}")

    @property
    def namespace(self) -> str:
        return (self.account / "namespace").read_text(encoding="utf-8").strip()

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https:"):
            return None
        return ssl.create_default_context(cafile=str(self.account / "ca.crt"))

    def call(self, method: str, path: str, body: Json | None = None, kind: str = "json") -> Json:
        """Return the answer to one request.

        Raises:
            HTTPError: the server refused it.
            OSError, HTTPException, ValueError: it did not answer, or only in part, or with
                something else than JSON.
        """
        token = (self.account / "token").read_text(encoding="utf-8").strip()  # it is rotated
        headers = {"Authorization": f"Bearer {token}", "Content-Type": f"application/{kind}"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310  # our URL
        with urlopen(request, timeout=self.timeout, context=self.tls) as answer:  # noqa: S310
            found: Json = json.load(answer)
        return found


class KubernetesLeaseStore:
    """The lease `name` in a namespace: of the pod, when none is given."""

    look_every = 1.0

    def __init__(self, server: ApiServer, name: str, seconds: float, namespace: str = "") -> None:
        self._server, self._name, self._seconds = server, name, seconds
        self._namespace = namespace
        self._looks = 0

    def look(self, instance: str = "") -> Record:
        lease = self._get()
        if lease is not None and instance:
            if self._looks % MARK_EVERY == 0:
                self._annotate(STANDBY + instance, str(datetime.now(UTC)))
            self._looks += 1
        return _record(lease)

    def take(self, seen: Record, instance: str) -> Record | None:
        record = _record(lease := self._get())
        if (record.number, record.renewal, record.given) != (seen.number, seen.renewal, seen.given):
            return None
        spec = self._spec(seen.number + 1, instance) | {"acquireTime": _time()}
        try:
            if lease is None:
                body = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self._name},
                    "spec": spec,
                }
                return _record(self._call("POST", "", body))
            return self._put(lease, spec)
        except ConflictError:
            return None

    def renew(self, number: int, instance: str) -> Record:
        return self._change(number, instance, self._spec(number, instance))

    def give(self, number: int, instance: str) -> None:
        self._change(number, instance, {"holderIdentity": ""})

    def want(self, number: int) -> None:
        self._annotate(WANTED, str(number))

    def read_memory(self) -> str | None:
        notes = ((self._get() or {}).get("metadata") or {}).get("annotations") or {}
        if (found := notes.get(MEMORY)) is None:
            return None
        try:
            return zlib.decompress(b64decode(found)).decode()
        except (ValueError, zlib.error) as error:
            raise LeaseError(f"lease {self._name}: {MEMORY}: {error}") from error

    def write_memory(self, number: int, instance: str, text: str) -> None:
        packed = b64encode(zlib.compress(text.encode())).decode()
        if is_too_large := len(packed) > MAX_MEMORY:
            packed = ""  # damaged: an older one would say too little
        self._change(number, instance, {}, {MEMORY: packed})
        if is_too_large:
            raise LeaseError(f"lease {self._name}: {MEMORY} has more than {MAX_MEMORY} characters")

    def _change(
        self, number: int, instance: str, spec: Json, notes: Mapping[str, str] = NO_NOTES
    ) -> Record:
        """Change our record `number`, with annotations; return the record that is there."""
        for _ in range(ATTEMPTS):
            record = _record(lease := self._get())
            if lease is None or (record.number, record.holder) != (number, instance):
                return record
            metadata = lease["metadata"]
            annotations = {**(metadata.get("annotations") or {}), **notes}
            lease["metadata"] = metadata | ({"annotations": annotations} if annotations else {})
            try:
                return self._put(lease, lease["spec"] | spec)
            except ConflictError:
                continue  # somebody annotated it, or took it
        raise LeaseError(f"lease {self._name}: it changes faster than it can be renewed")

    def _spec(self, number: int, instance: str) -> Json:
        return {
            "holderIdentity": instance,
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "leaseTransitions": number,
            "renewTime": _time(),
        }

    def _put(self, lease: Json, spec: Json) -> Record:
        return _record(self._call("PUT", f"/{self._name}", lease | {"spec": spec}))

    def _annotate(self, key: str, value: str) -> None:
        body = {"metadata": {"annotations": {key: value}}}
        self._call("PATCH", f"/{self._name}", body, "merge-patch+json")

    def _get(self) -> Json | None:
        return self._call("GET", f"/{self._name}")

    def _call(
        self, method: str, rest: str, body: Json | None = None, kind: str = "json"
    ) -> Json | None:
        """Return the answer to one request; None when the lease to read is absent.

        Raises:
            ConflictError: another writer was earlier.
            LeaseError: the server refused the request, or did not answer.
        """
        try:
            namespace = self._namespace or self._server.namespace
            path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases{rest}"
            return self._server.call(method, path, body, kind)
        except HTTPError as error:
            error.close()
            if error.code == HTTPStatus.CONFLICT:
                raise ConflictError("the lease has changed since it was read") from error
            if error.code == HTTPStatus.NOT_FOUND and method == "GET":
                return None
            reason = REASONS.get(error.code, error.reason)
            raise LeaseError(f"lease {self._name}: {error.code}: {reason}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise LeaseError(f"lease {self._name}: {self._server.url}: {error}") from error


class ConflictError(LeaseError):
    """Another writer was earlier."""


def _record(lease: Mapping[str, Any] | None) -> Record:
    """Return the record of an object `Lease`, whoever made it."""
    if lease is None:
        return NO_RECORD
    spec = lease.get("spec") or {}
    metadata = lease.get("metadata") or {}
    notes = metadata.get("annotations") or {}
    holder = spec.get("holderIdentity") or ""
    wanted = notes.get(WANTED, "")
    return Record(
        spec.get("leaseTransitions") or 0,
        holder,
        spec.get("renewTime") or "",
        given=not holder,
        standby={
            key.removeprefix(STANDBY): text
            for key, text in notes.items()
            if key.startswith(STANDBY)
        },
        wanted=int(wanted) if wanted.isdecimal() else 0,
        identity=str(metadata.get("uid") or "").replace("-", ""),
    )


def _time() -> str:
    """Return the time as Kubernetes' MicroTime."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
