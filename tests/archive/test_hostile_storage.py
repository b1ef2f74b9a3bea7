"""Files and answers of a storage that would take all memory, or never end, are refused."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
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


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteStorage]:
    """A bucket whose endpoint claims a terabyte for every object, and sends without an end."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "word")
    head = f'HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\nETag: "a"\r\n\r\n'.encode()

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            while request := client.recv(65_536):
                client.sendall(head)
                while not request.startswith(b"HEAD"):
                    client.sendall(bytes(65_536))

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        url = f"s3://bucket/a?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}"
        storage = open_storage(parse_location(url))
        assert isinstance(storage, RemoteStorage)
        yield storage
        server.shutdown(socket.SHUT_RDWR)


def test_an_object_that_claims_a_terabyte_is_not_read(endless: RemoteStorage) -> None:
    with pytest.raises(OSError, match="at most"):
        endless.read(Path("_seals/east.json"))
