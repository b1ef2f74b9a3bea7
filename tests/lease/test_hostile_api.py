"""An API server that answers strangely ends no instance, and makes none of them a holder."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import tracemalloc
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gateway.lease.holder import LeaseHolder
from gateway.lease.kubernetes_store import (
    HIGHEST,
    MAX_ANSWER,
    MAX_HOLDER,
    MEMORY,
    STANDBY,
    WANTED,
    ApiServer,
    KubernetesLeaseStore,
)
from gateway.lease.lease import Lease, LeaseError, LeaseStore, Record
from tests.waiting import PATIENCE, until

Answer: TypeAlias = Callable[[bytes], Iterable[bytes]]  # of a request, in the blocks to send

LEASE: dict[str, Any] = {
    "kind": "Lease",
    "metadata": {"name": "plant-1", "uid": "12-34", "resourceVersion": "7"},
    "spec": {"holderIdentity": "b", "leaseTransitions": 3, "renewTime": "2026-01-01T00:00:00Z"},
}
STATUS = {"kind": "Status", "status": "Failure", "code": 500, "metadata": {}}


def http(body: object, status: str = "200 OK", *headers: str) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(text)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + text


def always(*blocks: bytes) -> Answer:
    return lambda _: blocks


def lease(**changed: dict[str, Any]) -> dict[str, Any]:
    return LEASE | {key: {**LEASE[key], **value} for key, value in changed.items()}


@contextmanager
def api_server(
    folder: Path, answer: Answer, tls: ssl.SSLContext | None = None, timeout: float = PATIENCE
) -> Iterator[ApiServer]:
    """Send `answer` to each request, then close its connection."""
    (folder / "token").write_text("token-of-the-account")
    (folder / "namespace").write_text("plant")

    def serve(client: socket.socket) -> None:
        with (
            suppress(OSError),
            tls.wrap_socket(client, server_side=True) if tls else client as peer,
        ):
            request = peer.recv(65_536)
            for block in answer(request):
                peer.sendall(block)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        scheme = "https" if tls else "http"
        try:
            yield ApiServer(f"{scheme}://127.0.0.1:{server.getsockname()[1]}", folder, timeout)
        finally:
            server.shutdown(socket.SHUT_RDWR)


def store_of(server: ApiServer) -> LeaseStore:
    return KubernetesLeaseStore(server, "plant-1", 10.0)


STRANGE: dict[str, Answer] = {
    "a list": always(http([])),
    "a number": always(http(7)),
    "nothing": always(http(None)),
    "levels": always(http(b"[" * 100_000)),
    "an error as a success": always(http(STATUS)),
    "no fields": always(http({})),
    "another lease": always(http(lease(metadata={"name": "plant-2"}))),
    "a spec that is a text": always(http(LEASE | {"spec": "free"})),
    "metadata that are a list": always(http(LEASE | {"metadata": ["plant-1"]})),
    "notes that are a text": always(http(lease(metadata={"annotations": "none"}))),
    "notes that are numbers": always(http(lease(metadata={"annotations": {WANTED: 3}}))),
    "a number that is a text": always(http(lease(spec={"leaseTransitions": "3"}))),
    "a number that is no whole one": always(http(lease(spec={"leaseTransitions": 1.5}))),
    "a number that is true": always(http(lease(spec={"leaseTransitions": True}))),
    "a number below zero": always(http(lease(spec={"leaseTransitions": -1}))),
    "a number that nobody follows": always(http(lease(spec={"leaseTransitions": HIGHEST}))),
    "a number of many digits": always(http(b'{"kind": ' + b"9" * 100_000 + b"}")),
    "a holder that is a list": always(http(lease(spec={"holderIdentity": ["b"]}))),
    "a time that is a number": always(http(lease(spec={"renewTime": 4}))),
    "no text": always(http(b"\xff\xfe")),
    "no HTTP": always(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "a closed connection": always(),
    "a body that is too long": always(http(b'"' + b"a" * MAX_ANSWER + b'"')),
    "a body without an end": lambda _: chain([b"HTTP/1.1 200 OK\r\n\r\n["], repeat(b" " * 65_536)),
    "a claim of a terabyte": lambda _: chain(
        [b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n["], repeat(b" " * 65_536)
    ),
    "chunks without an end": lambda _: chain(
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"],
        repeat(b"10000\r\n" + b" " * 65_536 + b"\r\n"),
    ),
    "a chunk of no size": always(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n"
    ),
    "an error with a body without an end": lambda _: chain(
        [b"HTTP/1.1 500 No\r\n\r\n"], repeat(b" " * 65_536)
    ),
    "headers without an end": lambda _: chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"A: b\r\n")),
    "a redirect to itself": always(http({}, "302 Found", "Location: /")),
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
def test_a_strange_answer_is_an_error_of_the_lease(tmp_path: Path, answer: Answer) -> None:
    with api_server(tmp_path, answer) as server:
        store = store_of(server)
        tracemalloc.start()
        try:
            calls: list[Callable[[], object]] = [
                lambda: store.look("a"),
                lambda: store.take(Record(0, "", given=True), "a"),
                lambda: store.renew(3, "b"),
                lambda: store.give(3, "b"),
                lambda: store.write_memory(3, "b", "text"),
            ]
            for call in calls:
                with pytest.raises(LeaseError, match="lease plant-1: "):
                    call()
            assert tracemalloc.get_traced_memory()[1] < 32 * MAX_ANSWER
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("body", [STATUS, {}, LEASE, lease(spec={"holderIdentity": "a"})])
def test_a_write_whose_answer_does_not_show_it_makes_no_holder(
    tmp_path: Path, body: object
) -> None:
    """The answer to the write is strange, that to the look before it is not."""

    def answer(request: bytes) -> Iterable[bytes]:
        if request.startswith(b"GET"):
            return [http({}, "404 Not Found")]
        return [http(body, "201 Created")]

    with api_server(tmp_path, answer) as server, pytest.raises(LeaseError, match="plant-1"):
        store_of(server).take(Record(0, "", given=True), "a")


@pytest.mark.parametrize("block", [b"X", b"X: y\r\n", b" "], ids=["line", "headers", "body"])
def test_an_answer_that_comes_byte_by_byte_ends(tmp_path: Path, block: bytes) -> None:
    """Each byte comes in time, and the answer never does."""
    ended = threading.Event()

    def answer(_: bytes) -> Iterator[bytes]:
        yield b"" if block == b"X" else b"HTTP/1.1 200 OK\r\n" + b"\r\n" * (block == b" ")
        while not ended.wait(0.05):
            yield block[:1] if block == b"X" else block

    with api_server(tmp_path, answer, timeout=0.3) as server:
        with pytest.raises(LeaseError, match=r"no whole answer within 0\.3 s|more than"):
            store_of(server).look()
        ended.set()


def test_a_redirect_takes_the_token_to_no_other_server(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def other(request: bytes) -> Iterable[bytes]:
        asked.append(request)
        return [http(LEASE)]

    with api_server(tmp_path, other) as there:
        found = http({}, "307 Temporary Redirect", f"Location: {there.url}/")
        with (
            api_server(tmp_path, always(found)) as server,
            pytest.raises(LeaseError, match="lease plant-1: 307: "),
        ):
            store_of(server).look()
    assert asked == []


def test_a_strange_answer_does_not_end_the_thread(tmp_path: Path) -> None:
    """The holder asks again, and holds the lease once the answers are right."""
    bodies: list[object] = [[], {"kind": "Lease", "metadata": 4}, STATUS]

    def answer(request: bytes) -> Iterable[bytes]:
        if bodies:
            return [http(bodies.pop())]
        if request.startswith(b"GET"):
            return [http({}, "404 Not Found")]
        return [http(lease(spec={"holderIdentity": "a", "leaseTransitions": 1}))]

    with api_server(tmp_path, answer) as server:
        holder = LeaseHolder(store_of(server), "a", 600.0)
        holder.start()
        until(holder.holds)
        holder.give()


def test_a_name_of_a_holder_is_cut(tmp_path: Path) -> None:
    """Page, log and metrics show it."""
    with api_server(tmp_path, always(http(lease(spec={"holderIdentity": "b" * 1_000_000})))) as api:
        assert store_of(api).look().holder == "b" * MAX_HOLDER


def test_a_wish_of_many_digits_is_none(tmp_path: Path) -> None:
    notes = {"annotations": {WANTED: "9" * 5_000}}
    with api_server(tmp_path, always(http(lease(metadata=notes)))) as server:
        assert store_of(server).look().wanted == 0


@pytest.mark.parametrize("year", ["0001", "1970", "9999"])
def test_the_year_of_a_renewal_decides_nothing(tmp_path: Path, year: str) -> None:
    time = f"{year}-01-01T00:00:00.000000Z"
    with api_server(tmp_path, always(http(lease(spec={"renewTime": time})))) as server:
        waiting = Lease("a", 10.0, 1.0)
        waiting.looked(0.0, store_of(server).look())
        assert not waiting.holds(9.0)
        assert waiting.next(9.0).__class__.__name__ == "Look"


def test_a_memory_that_unpacks_to_gigabytes_is_damaged(tmp_path: Path) -> None:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(128)) + packer.flush()
    notes = {"annotations": {MEMORY: b64encode(packed).decode()}}
    with api_server(tmp_path, always(http(lease(metadata=notes)))) as server:
        tracemalloc.start()
        try:
            with pytest.raises(LeaseError, match="unpacks to more than"):
                store_of(server).read_memory()
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()


def test_instances_that_ended_are_forgotten() -> None:
    """A user who may annotate the lease can write other names for ever."""
    waiting = Lease("a", 10.0, 1.0)
    for number in range(100):
        waiting.looked(float(number), Record(3, "b", standby={f"{STANDBY}{number}": "now"}))
    assert len(waiting._standby) == 1  # noqa: SLF001  # no other part shows it


def test_a_certificate_of_another_host_ends_the_request(tmp_path: Path) -> None:
    """It is signed by the authority that the pod was given, and has another name."""
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other"]
    names = [
        "-addext",
        "subjectAltName=DNS:other.example",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*command, *names], check=True, capture_output=True, timeout=60)  # noqa: S603
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    asked: list[bytes] = []

    def answer(request: bytes) -> Iterable[bytes]:
        asked.append(request)
        return [http(LEASE)]

    with (
        api_server(tmp_path, answer, tls) as server,
        pytest.raises(LeaseError, match="IP address mismatch"),
    ):
        store_of(server).look()
    assert not any(asked)
