"""The times at which the certificates of a configuration expire: the page's and the endpoints'."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gateway.archive.durable import read_regular
from gateway.config.named_files import WrittenPath
from gateway.config.nodes import KeyPath

_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\s.*?\s-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)
_TIME: Final = rb"(?:\x17\x0d|\x18\x0f)([0-9]{12}|[0-9]{14})Z"  # UTCTime, GeneralizedTime
_SHORT: Final = 12  # digits of a UTCTime
_VALIDITY: Final = re.compile(rb"\x30." + _TIME + _TIME, re.DOTALL)  # RFC 5280, 4.1: two times


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
    except (OSError, ValueError):
        return []


def expiry(der: bytes) -> float:
    """Return `notAfter` of a certificate in DER, in seconds since 1970-01-01 UTC (RFC 5280, 4.1).

    The first sequence of two times is the validity: only names, in text, stand before it.

    Raises:
        ValueError: it has none, or an illegal one.
    """
    if (found := _VALIDITY.search(der)) is None:
        raise ValueError("the certificate has no validity")
    text = found[2].decode("ascii")
    if len(text) == _SHORT:  # two digits of the year, from 1950 to 2049
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
