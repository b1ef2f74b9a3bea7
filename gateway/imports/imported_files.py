"""Reading of the files of another bridge; the importers parse what is read here."""

from __future__ import annotations

import os
from pathlib import Path
from socket import gethostname
from typing import Final
from zlib import crc32

from gateway.errors import GatewayError

MAX_BYTES: Final = 4 << 20  # a larger file is not a configuration
MAX_HOST: Final = 20  # characters of its name in that of a gateway


def site_of(path: Path) -> str:
    """Return the host's name and a digest of where the file is.

    The same file gives the same; one of another host, or in another folder, gives another.
    """
    host = gethostname().partition(".")[0][:MAX_HOST]
    return f"{host}-{crc32(os.fsencode(path.absolute())):08x}"


def conf_files(folder: str) -> list[tuple[str, bytes]]:
    """Return the files of an `include_dir`, in the order in which mosquitto reads them.

    Each letter's upper case comes before its lower case: A, a, B, b.

    Raises:
        GatewayError: the folder or a file of it cannot be read.
    """
    try:
        found = [each for each in Path(folder).iterdir() if each.name.endswith(".conf")]
    except OSError as error:
        raise GatewayError(f"{folder}: cannot read the folder: {error.strerror}") from error
    paths = sorted(found, key=lambda each: [(char.upper(), char) for char in each.name])
    return [(str(each), read_file(each)) for each in paths if each.name != ".conf"]


def read_file(path: Path) -> bytes:
    """Return the content of a configuration file.

    Raises:
        GatewayError: it cannot be read, is not text, or is larger than `MAX_BYTES`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise GatewayError(f"{path}: cannot read the file: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise GatewayError(f"{path}: the file is larger than {MAX_BYTES} bytes")
    if b"\0" in data:
        raise GatewayError(f"{path}: the file is not text")
    return data
