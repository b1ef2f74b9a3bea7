"""A lease as an object of Kubernetes: `Lease` of `coordination.k8s.io/v1`.

Its number is `spec.leaseTransitions`; each change bears the `resourceVersion` that was read, so
that the API server refuses one of two writers (409 Conflict). An empty `holderIdentity` is a lease
that was given away. The fields: https://kubernetes.io/docs/reference/kubernetes-api/ (Lease v1).

Four requests need no client library: the official one weighs 30 MB, with 700 modules.
An answer is bounded in time and size, and each field that is read has its type, or it is an error.
"""

from __future__ import annotations

import json
import os
import ssl
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection, responses
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from gateway.deadline import answered_within
from gateway.lease.lease import NO_RECORD, LeaseError, Record

Json: TypeAlias = dict[str, Any]
NO_NOTES: Final[Mapping[str, str]] = {}

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
STANDBY: Final = "standby.gateway/"  # with the name of an instance: an annotation of the lease
WANTED: Final = "gateway/handover"
MEMORY: Final = "gateway/memory"  # compressed, in base64
MAX_MEMORY: Final = 200_000  # characters of it; the API server takes 262,144 of all annotations
MARK_EVERY: Final = 3  # looks; each mark of a standby is a write for the API server
MAX_UNPACKED: Final = 16 << 20  # bytes of it
MAX_ANSWER: Final = 2 << 20  # bytes; the API server keeps no object of more than 1.5 MiB
MAX_HOLDER: Final = 253  # characters of a name that is shown
HIGHEST: Final = 2**31 - 1  # of `leaseTransitions`
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
            LeaseError: this is not a pod.
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

    def call(
        self, method: str, path: str, body: Json | None = None, kind: str = "json"
    ) -> tuple[int, object]:
        """Return the status of the answer to one request, and its JSON; None beside an error.

        No redirect is followed: the token is for this server, and for no other one.

        Raises:
            OSError, HTTPException, ValueError, RecursionError: it did not answer, or only in part,
                or with something else than JSON.
        """
        token = (self.account / "token").read_text(encoding="utf-8").strip()  # it is rotated
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": f"application/{kind}",
            "Connection": "close",
        }
        data = None if body is None else json.dumps(body).encode()
        with closing(self._connection()) as connection:
            connection.connect()
            with answered_within(self.timeout, connection.sock):
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read(MAX_ANSWER + 1)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer.status, None
        if len(text) > MAX_ANSWER:
            raise ValueError(f"the answer has more than {MAX_ANSWER} bytes")
        return answer.status, json.loads(text)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        if self.tls is None:
            return HTTPConnection(parts.hostname or "", parts.port, timeout=self.timeout)
        return HTTPSConnection(
            parts.hostname or "", parts.port, timeout=self.timeout, context=self.tls
        )


class KubernetesLeaseStore:
    """The lease `name` in a namespace: of the pod, when none is given."""

    look_every = 1.0

    def __init__(self, server: ApiServer, name: str, seconds: float, namespace: str = "") -> None:
        self._server, self._name, self._seconds = server, name, seconds
        self._namespace = namespace
        self._looks = 0

    def look(self, instance: str = "") -> Record:
        lease = self._get()
        record = _record(lease)
        if lease is not None and instance:
            if self._looks % MARK_EVERY == 0:
                self._annotate(STANDBY + instance, str(datetime.now(UTC)))
            self._looks += 1
        return record

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
                made = _record(self._call("POST", "", body))
            else:
                made = self._put(lease, spec)
        except ConflictError:
            return None
        if (made.number, made.holder) != (seen.number + 1, instance):
            raise LeaseError(f"lease {self._name}: the answer to its taking shows another record")
        return made

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
            return _unpacked(found)
        except (TypeError, ValueError, zlib.error) as error:
            raise LeaseError(f"lease {self._name}: {MEMORY}: {error}") from error

    def write_memory(self, number: int, instance: str, text: str) -> None:
        whole = text.encode()
        packed = b64encode(zlib.compress(whole)).decode()
        if is_too_large := len(packed) > MAX_MEMORY or len(whole) > MAX_UNPACKED:
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
            status, found = self._server.call(method, path, body, kind)
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise LeaseError(f"lease {self._name}: {self._server.url}: {error}") from error
        if status == HTTPStatus.CONFLICT:
            raise ConflictError("the lease has changed since it was read")
        if status == HTTPStatus.NOT_FOUND and method == "GET":
            return None
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            reason = REASONS.get(status, responses.get(status, ""))
            raise LeaseError(f"lease {self._name}: {status}: {reason}")
        if fault := _fault(found, self._name):
            raise LeaseError(f"lease {self._name}: {self._server.url}: {fault}")
        return cast("Json", found)


class ConflictError(LeaseError):
    """Another writer was earlier."""


def _fault(found: object, name: str) -> str:
    """Return why an answer is not the lease `name` in fields of their types; "" when it is."""
    if not isinstance(found, dict) or found.get("kind") != "Lease":
        return "the answer is no Lease"
    metadata, spec = found.get("metadata"), found.get("spec") or {}
    if not (isinstance(metadata, dict) and metadata.get("name") == name and isinstance(spec, dict)):
        return "the answer is another Lease, or has no `spec`"
    notes = metadata.get("annotations") or {}
    if not isinstance(notes, dict) or not all(isinstance(each, str) for each in notes.values()):
        return "`annotations` are no texts"
    for field in ("holderIdentity", "renewTime"):
        if not isinstance(spec.get(field), str | None):
            return f"`{field}` is no text"
    number = spec.get("leaseTransitions")
    if number is not None and (type(number) is not int or not 0 <= number < HIGHEST):
        return (
            f"nobody can follow a `leaseTransitions` that is not in 0..{HIGHEST - 1}; delete the"
            " Lease while both instances are stopped"
        )
    return ""


def _record(lease: Json | None) -> Record:
    """Return the record of a lease that was checked."""
    if lease is None:
        return NO_RECORD
    spec, metadata = lease.get("spec") or {}, lease["metadata"]
    notes = metadata.get("annotations") or {}
    holder = spec.get("holderIdentity") or ""
    wanted = notes.get(WANTED, "")
    return Record(
        spec.get("leaseTransitions") or 0,
        holder[:MAX_HOLDER],
        spec.get("renewTime") or "",
        given=not holder,
        standby={
            key.removeprefix(STANDBY): text
            for key, text in notes.items()
            if key.startswith(STANDBY)
        },
        wanted=int(wanted) if wanted.isdecimal() and len(wanted) <= len(str(HIGHEST)) else 0,
        identity=str(metadata.get("uid") or "").replace("-", ""),
    )


def _unpacked(packed: str) -> str:
    """Return the text of a memory.

    Raises:
        ValueError, zlib.error: it is damaged, or longer than any that an instance writes.
    """
    packer = zlib.decompressobj()
    text = packer.decompress(b64decode(packed), MAX_UNPACKED)
    if packer.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED} bytes")
    if not packer.eof:
        raise ValueError("it is incomplete")
    return text.decode()


def _time() -> str:
    """Return the time as Kubernetes' MicroTime."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
