"""Answers of the broker: a code and a text, as a header parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.errors import WireError
from gateway.wire.smf.parameters import RESPONSE, U32, encode_parameter


@dataclass(frozen=True, slots=True)
class SmfResponse:
    """The broker's answer: a code and a text, which clients compare case-sensitively."""

    code: int
    text: str


OK: Final = SmfResponse(200, "OK")


def encode_response(response: SmfResponse) -> bytes:
    return encode_parameter(RESPONSE, U32.pack(response.code) + response.text.encode())


def decode_response(value: bytes) -> SmfResponse:
    """Decode an answer.

    Raises:
        WireError: the answer has no code.
    """
    if len(value) < U32.size:
        raise WireError("smf: a response has no code")
    return SmfResponse(U32.unpack_from(value)[0], value[4:].decode("utf-8", "replace"))
