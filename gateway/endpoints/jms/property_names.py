"""Names of JMS properties: reserved names, and an escape that every provider accepts."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar
from unicodedata import category

from gateway.model.message import GATEWAY_ID, GATEWAY_TRACE

GATEWAY_PREFIX: Final = "gateway_"  # names of properties for headers that are not a field of JMS
ORIGIN, TIME, SOURCE_ID = (f"{GATEWAY_PREFIX}{name}" for name in ("origin", "time", "source_id"))
EXPIRY, CONTENT_TYPE = f"{GATEWAY_PREFIX}expiry", f"{GATEWAY_PREFIX}content_type"
PROOF: Final = f"{GATEWAY_PREFIX}proof"
CORRELATION_FORM, PROPERTY_TYPES = f"{GATEWAY_PREFIX}correlation", f"{GATEWAY_PREFIX}types"
IDS: Final = frozenset({GATEWAY_ID, GATEWAY_TRACE})  # properties, with their own names
BODY_FORM: Final = "jms.body"  # property of the gateway's message: the type of the JMS body
BODY_ERROR: Final = "jms.error"  # property of the gateway's message: why a body was unreadable
JMS_TYPE: Final = "JMSType"
IMPORTED: Final = "JMS_TIBCO_IMPORTED"
SMARTSOCKETS_CORRELATION: Final = "JMS_TIBCO_SS_CORRELATION_ID"

_SETTABLE = frozenset({"JMSXGroupID", "JMSXGroupSeq"})  # JMS 2.0, 3.5.9: the client may set these
_SET_BY_ONE_SERVER = frozenset(  # results of one server or requests to it: never forwarded
    {
        "JMS_TIBCO_COMPRESS",
        "JMS_TIBCO_DISABLE_SENDER",
        IMPORTED,
        "JMS_TIBCO_MSG_EXT",
        "JMS_TIBCO_MSG_TRACE",
        "JMS_TIBCO_PRESERVE_UNDELIVERED",
        "JMSDeliveryTime",
        "JMSXDeliveryCount",
        "JMSXRcvTimestamp",
        "JMSXState",
        "JMSXConsumerTXID",
        "JMSXProducerTXID",
    }
)
_RESERVED_WORDS = frozenset(  # JMS 2.0, 3.8.1.1, in any case of letters
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
_ESCAPE = re.compile(r"_x([0-9a-f]{0,6})_")
_IDENTIFIER_START = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Pc", "Sc"})  # Java's rule
_IDENTIFIER_PART = _IDENTIFIER_START | {"Nd", "Mn", "Mc"}
_BMP_END = 0x10000
MAX_CACHED_LENGTH = 256  # characters of a name whose translation is cached

_Made = TypeVar("_Made", bound=str | None)


def _cached(translate: Callable[[str], _Made]) -> Callable[[str], _Made]:
    """Cache the translations of short names; a sender chooses how long its names are."""
    cached = lru_cache(maxsize=8_192)(translate)

    @wraps(translate)
    def call(name: str) -> _Made:
        return cached(name) if len(name) <= MAX_CACHED_LENGTH else translate(name)

    return call


@_cached
def encode_property_name(name: str) -> str | None:
    """Return the name of a property in JMS, or None for a property that is not forwarded.

    A character that no Java identifier can have is written as `_x`, its hexadecimal code point and
    `_`. The same holds for the first character of a reserved word, of a JMS name and of a name
    of the gateway, and for an underline before an `x`. `decode_property_name` is the inverse.
    """
    if name in _SET_BY_ONE_SERVER:
        return None
    if name in _SETTABLE or name in IDS:
        return name
    reserved = name.upper() in _RESERVED_WORDS or name.startswith(("JMS", GATEWAY_PREFIX))
    parts = [
        f"_x{ord(char):x}_"
        if (reserved and not index) or not _is_legal(char, index) or name.startswith("_x", index)
        else char
        for index, char in enumerate(name)
    ]
    return "".join(parts) or "_x_"


@_cached
def decode_property_name(name: str) -> str:
    """Return the gateway's name of a JMS property; a name that no gateway wrote is unchanged."""
    if "_x" not in name:
        return name
    plain = _ESCAPE.sub(_unescape, name)
    return plain if encode_property_name(plain) == name else name


def _unescape(match: re.Match[str]) -> str:
    digits = match[1]
    if not digits:
        return ""
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else match[0]  # Unicode's last code point


def _is_legal(char: str, index: int) -> bool:
    allowed = _IDENTIFIER_PART if index else _IDENTIFIER_START
    return ord(char) < _BMP_END and category(char) in allowed
