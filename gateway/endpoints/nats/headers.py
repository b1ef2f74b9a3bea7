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
from dataclasses import replace
from typing import Any, Final

from gateway.endpoints.header_fields import read_fields
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import PROPERTY
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
FIELD_NAMES: Final = (*_PLAIN, "correlation_id", "origin", "properties", "retained")


def write_headers(headers: Headers, proof: str = "") -> dict[str, str]:
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
    if proof:
        found[PROOF] = proof
    return found


def read_headers(found: Mapping[str, str] | None, own: Headers) -> tuple[Headers, str]:
    """Return `own` with the headers of a received message, which come first, and the proof.

    A malformed `Gateway-Fields` is a property.
    """
    if not found:
        return own, ""
    properties: dict[str, Value] = {
        name: value for name, value in found.items() if not name.startswith("Nats-")
    }
    proof = read_proof(properties.pop(PROOF, None))
    fields: dict[str, Any] = {}
    if (text := properties.get(FIELDS)) is not None:
        fields = _read_fields(str(text))
        if fields:
            del properties[FIELDS]
            properties |= fields.pop("properties", {})
    return replace(own, properties=properties, **fields), proof


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
