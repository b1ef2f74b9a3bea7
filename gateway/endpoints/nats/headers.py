"""Headers of a message to headers of NATS and back.

A property that is a plain text is a header of its own. All else stands in the header
`Gateway-Fields` as one line of JSON, in ASCII; bytes in it are `{"base64": ...}`. The proof of a
copy has a header of its own.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from gateway.endpoints.header_fields import read_fields
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import PROPERTY
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
    "priority", "expiry", "time", "content_type", "reply_to", "source_id",
)  # fmt: skip
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
    rest: dict[str, Any] = {}
    for name, value in headers.properties.items():
        plain = isinstance(value, str) and _VALUE.fullmatch(value) and _KEY.fullmatch(name)
        if plain and not name.lower().startswith(("nats-", "gateway-", "status", "description")):
            found[name] = str(value)
        else:
            rest[name] = _encode(value)
    fields: dict[str, Any] = {key: getattr(headers, key) for key in _PLAIN}
    fields["correlation_id"] = _encode(headers.correlation_id)
    fields["origin"], fields["properties"] = list(headers.origin), rest
    fields["retained"] = headers.retained
    fields = {
        key: value
        for key, value in fields.items()
        if value is not None and value is not False and value not in ([], {})  # 0 is a priority
    }
    if fields:
        found[FIELDS] = json.dumps(fields, separators=(",", ":"))
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
        fields = _read_fields(text)
        if fields.keys().isdisjoint(_OF_ONE_MESSAGE):
            self._shared.add(text, fields, 4 * len(text))
        return fields


def _read_fields(text: str) -> dict[str, Any]:
    """Return the fields with their types, or nothing where a field has a wrong one."""
    try:
        return read_fields(json.loads(text, object_hook=_decode), FIELD_NAMES) or {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _encode(value: Value) -> Any:  # noqa: ANN401  # what json takes
    match value:
        case bytes():
            return {"base64": b64encode(value).decode()}
        case Mapping():
            return {str(key): _encode(each) for key, each in value.items()}
        case list() | tuple():
            return [_encode(each) for each in value]
        case None | bool() | int() | float() | str():
            return value
    raise TranslationError("nats", "", PROPERTY, f"no form for a {type(value).__name__}")


def _decode(found: dict[str, Any]) -> Any:  # noqa: ANN401  # what json gives
    if found.keys() == {"base64"} and isinstance(found["base64"], str):
        return b64decode(found["base64"])
    return found
