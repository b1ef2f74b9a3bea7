"""The times at which the certificates of a configuration expire: the page's and the endpoints'."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gateway.archive.durable import read_regular
from gateway.config.nodes import KeyPath
from gateway.config.values import WrittenPath

_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\s.*?\s-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)
_FIELDS_BEFORE_VALIDITY: Final = 3  # serial number, algorithm, issuer: RFC 5280, 4.1
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_LONG: Final = 0x80  # the length of an element is longer than one byte


def expiries(paths: Mapping[KeyPath, WrittenPath]) -> dict[str, float]:
    """Return when the PEM file of each setting expires, in seconds since 1970-01-01 UTC.

    A chain expires with the first of its certificates. A file of certificate authorities expires
    with the last one: a rotation has the next one beside the one in use. A file that cannot be
    read, or has no certificate, is left out.
    """
    found: dict[str, float] = {}
    for at, path in paths.items():
        if path.kind == "file" and (times := _times(Path(path.used))):
            choose = max if "ca" in str(at[-1]).split("_") else min
            found[".".join(map(str, at))] = choose(times)
    return found


def _times(path: Path) -> list[float]:
    try:
        text = read_regular(path).decode("ascii", "replace")
        return [expiry(ssl.PEM_cert_to_DER_cert(each)) for each in _PEM.findall(text)]
    except (OSError, ValueError, IndexError):
        return []


def expiry(der: bytes) -> float:
    """Return `notAfter` of a certificate in DER, in seconds since 1970-01-01 UTC (RFC 5280, 4.1).

    Raises:
        ValueError, IndexError: it is malformed.
    """
    _, certificate, _ = _element(der, 0)
    _, at, _ = _element(der, certificate)
    if der[at] == _VERSION:
        at = _element(der, at)[2]
    for _ in range(_FIELDS_BEFORE_VALIDITY):
        at = _element(der, at)[2]
    _, not_before, _ = _element(der, at)
    tag, start, end = _element(der, _element(der, not_before)[2])
    text = der[start:end].decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year, from 1950 to 2049
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the element at `at`, and the bounds of its content."""
    tag, length, start = data[at], data[at + 1], at + 2
    if length & _LONG:
        size = length & ~_LONG
        length, start = int.from_bytes(data[start : start + size]), start + size
    return tag, start, start + length
