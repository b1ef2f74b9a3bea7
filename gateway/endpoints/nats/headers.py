"""Headers of a message to headers of NATS and back.

A property that is a plain text is a header of its own. All else stands in the header
`Gateway-Fields` as one line of JSON, in ASCII; bytes in it are `{"base64": ...}`. The proof of a
copy has a header of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from gateway.endpoints.json_fields import read_json, write_json
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import headers_size
from gateway.model.message import Headers, Value
from gateway.model.proof_text import read_proof

FIELDS: Final = "Gateway-Fields"
PROOF: Final = "Gateway-Proof"
MESSAGE_ID: Final = "Nats-Msg-Id"
_KEY: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")  # a token of HTTP: the library's
_VALUE: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")  # the library strips blanks
_PLAIN: Final = (
    "priority",
    "expiry",
    "time",
    "content_type",
    "reply_to",
    "source_id",
)
_OF_ONE_MESSAGE: Final = ("expiry", "time", "source_id", "correlation_id", "properties")
MAX_CACHED: Final = 8 << 20  # bytes of a reader or a writer
FIELD_NAMES: Final = (*_PLAIN, "correlation_id", "origin", "properties", "retained")


class HeaderWriter:
    """Writes headers of NATS, and keeps those that messages share. Mutable: used by one sender."""

    def __init__(self) -> None:
        # by id(); a value keeps its headers, so that no others get their id()
        self._shared: LimitedCache[int, tuple[Headers, dict[str, str]]] = LimitedCache(MAX_CACHED)

    def write(self, headers: Headers, proof: str = "") -> dict[str, str]:
        """Return the headers of NATS. Raises as `write_headers` does."""
        known = self._shared.get(id(headers))
        if known is None:
            known = headers, write_headers(headers)
            if headers.is_shared:
                self._shared.add(id(headers), known, 2 * headers_size(headers))
        return {**known[1], PROOF: proof} if proof else known[1].copy()


def write_headers(headers: Headers) -> dict[str, str]:
    """Return the headers of NATS.

    Raises:
        TranslationError: a property has no form in JSON.
    """
    found: dict[str, str] = {}
    rest: dict[str, Value] = {}
    for name, value in headers.properties.items():
        plain = isinstance(value, str) and _VALUE.fullmatch(value) and _KEY.fullmatch(name)
        if plain and not name.lower().startswith(("nats-", "gateway-", "status", "description")):
            found[name] = str(value)
        else:
            rest[name] = value
    if text := write_json(headers, _PLAIN, rest, "nats"):
        found[FIELDS] = text
    return found


class HeaderBlockReader:
    """Reads headers of NATS, and keeps the fields that many messages share.

    Mutable: owned by one thread.
    """

    def __init__(self) -> None:
        self._shared: LimitedCache[str, dict[str, Any]] = LimitedCache(MAX_CACHED)

    def read(self, found: Mapping[str, str] | None, own: Mapping[str, Any]) -> tuple[Headers, str]:
        """Return the headers of a received message, which come before its `own`, and the proof.

        A malformed `Gateway-Fields` is a property.
        """
        if not found:
            return Headers(**own), ""
        properties: dict[str, Value] = {
            name: value for name, value in found.items() if not name.startswith("Nats-")
        }
        proof = read_proof(properties.pop(PROOF, None))
        if (text := properties.get(FIELDS)) is not None and (fields := self._read(str(text))):
            del properties[FIELDS]
            properties |= fields.get("properties", {})
            own = {**own, **fields}
        return Headers(**{**own, "properties": properties}), proof

    def _read(self, text: str) -> dict[str, Any]:
        if (known := self._shared.get(text)) is not None:
            return known
        fields = read_json(text, FIELD_NAMES)
        if fields.keys().isdisjoint(_OF_ONE_MESSAGE):
            self._shared.add(text, fields, 4 * len(text))
        return fields
