"""Files and answers of a storage that would take all memory, or never end, are refused."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from gateway.archive.location import parse_location
from gateway.archive.storage import LocalStorage, RemoteStorage, open_storage

HUGE = 1 << 40  # bytes


def test_a_sparse_file_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "seal.json").open("wb") as file:
        file.truncate(HUGE)

    with pytest.raises(OSError, match="at most"):
        LocalStorage(tmp_path).read(Path("seal.json"))


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    storage = LocalStorage(tmp_path)

    for read in (storage.open, storage.read):
        with pytest.raises(OSError, match="no regular file"):
            read(Path("a.parquet"))


def test_an_endless_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "seal.json").symlink_to("/dev/zero")

    with pytest.raises(OSError, match="no regular file"):
        LocalStorage(tmp_path).read(Path("seal.json"))


@contextmanager
def storage_at(answer: Callable[[socket.socket, bytes], None]) -> Iterator[RemoteStorage]:
    """A bucket whose endpoint answers each request by `answer`."""

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            while request := client.recv(65_536):
                answer(client, request)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        url = f"s3://bucket/a?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}"
        storage = open_storage(parse_location(url))
        assert isinstance(storage, RemoteStorage)
        try:
            yield storage
        finally:
            server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "word")


@pytest.fixture
def endless(account: None) -> Iterator[RemoteStorage]:  # noqa: ARG001
    """A bucket whose endpoint claims a terabyte for every object, and sends without an end."""
    head = f'HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\nETag: "a"\r\n\r\n'.encode()

    def answer(client: socket.socket, request: bytes) -> None:
        client.sendall(head)
        while not request.startswith(b"HEAD"):
            client.sendall(bytes(65_536))

    with storage_at(answer) as storage:
        yield storage


@pytest.fixture
def answering(account: None) -> Iterator[Callable[[bytes], RemoteStorage]]:  # noqa: ARG001
    """A bucket whose endpoint gives one answer to all."""
    with ExitStack() as opened:
        yield lambda data: opened.enter_context(storage_at(lambda client, _: client.sendall(data)))


def test_an_object_that_claims_a_terabyte_is_not_read(endless: RemoteStorage) -> None:
    with pytest.raises(OSError, match="at most"):
        endless.read(Path("_seals/east.json"))


def listing(key: str, size: int = 1) -> bytes:
    """The answer of a bucket to the question for its objects."""
    content = f"<Contents><Key>{key}</Key><Size>{size}</Size></Contents>"
    body = f"<ListBucketResult><KeyCount>1</KeyCount>{content}</ListBucketResult>"
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("key", "size"),
    [
        pytest.param("other/x.parquet", 1, id="another prefix"),
        pytest.param("/etc/passwd", 1, id="absolute"),
        pytest.param("a/date=2026-03-14/../../../etc/passwd", 1, id="above"),
        pytest.param("a/date=2026-03-14/..", 1, id="the folder above"),
        pytest.param("a/date=2026-03-14//x", 1, id="a level without a name"),
        pytest.param("a/date=2026-03-14/x", -1, id="a size below zero"),
    ],
)
def test_a_listing_of_what_is_no_file_of_the_archive_is_an_error(
    answering: Callable[[bytes], RemoteStorage], key: str, size: int
) -> None:
    """Else a path of it would leave the folder, or the command would end with a traceback."""
    storage = answering(listing(key, size))

    for listed in (storage.files, storage.names, storage.written):
        with pytest.raises(OSError, match="the storage lists"):
            listed(Path("date=2026-03-14"))
