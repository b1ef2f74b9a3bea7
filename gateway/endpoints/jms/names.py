"""Names of JMS: addresses with their kind, and property names that every provider takes.

An address is the name of a destination of the endpoint's own kind; the other kinds say it in a
prefix: `queue:`, `topic:`, `tempqueue:`, `temptopic:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2s
from typing import Final
from unicodedata import category

from gateway.model.message import GATEWAY_ID

NOWHERE, TOPIC, QUEUE, TEMPORARY_TOPIC, TEMPORARY_QUEUE = range(5)  # as in Packer.java
KINDS: Final = {"topic": TOPIC, "queue": QUEUE}
_PREFIXES: Final = {
    TOPIC: "topic:",
    QUEUE: "queue:",
    TEMPORARY_TOPIC: "temptopic:",
    TEMPORARY_QUEUE: "tempqueue:",
}
ADVISORY: Final = "ActiveMQ.Advisory."  # and it publishes there under every wildcard
LONGEST_NAME = 32_000  # bytes; ActiveMQ breaks every receiver's connection past 32,767
EMS_NAME, EMS_ELEMENTS, EMS_ELEMENT = 249, 64, 127  # EMS User's Guide, "Destination Name"
RV_INBOX: Final = "_INBOX"  # Adapter SDK, "Subject Names": the one such name to send to
SS_REST: Final = "///"  # how EMS spells a token `...` (User's Guide, chapter 16)

PREFIX: Final = "gateway_"  # property names that carry what JMS has no field for
ORIGIN, TIME, SOURCE_ID = f"{PREFIX}origin", f"{PREFIX}time", f"{PREFIX}source_id"
EXPIRY, CONTENT_TYPE = f"{PREFIX}expiry", f"{PREFIX}content_type"
CORRELATION, TYPES = f"{PREFIX}correlation", f"{PREFIX}types"
BODY: Final = "jms.body"  # property of the gateway's message: what the body was
TYPE: Final = "JMSType"
IMPORTED: Final = "JMS_TIBCO_IMPORTED"
SS_CORRELATION: Final = "JMS_TIBCO_SS_CORRELATION_ID"
IMPORT_MARK: Final = "~imported/"

_SETTABLE = frozenset({"JMSXGroupID", "JMSXGroupSeq"})  # JMS 2.0, 3.5.9: the client may set these
_OF_ONE_HOP = frozenset(  # they say what one server did or shall do, so the next never gets them
    {
        "JMS_TIBCO_COMPRESS", "JMS_TIBCO_DISABLE_SENDER", IMPORTED, "JMS_TIBCO_MSG_EXT",
        "JMS_TIBCO_MSG_TRACE", "JMS_TIBCO_PRESERVE_UNDELIVERED", "JMSDeliveryTime",
        "JMSXDeliveryCount", "JMSXRcvTimestamp", "JMSXState", "JMSXConsumerTXID",
        "JMSXProducerTXID",
    }
)  # fmt: skip
_RESERVED = frozenset(  # JMS 2.0, 3.8.1.1, in any case of letters
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
_ESCAPE = re.compile(r"_x([0-9a-f]{0,6})_")
_FIRST = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Pc", "Sc"})  # Java's identifiers
_PART = _FIRST | {"Nd", "Mn", "Mc"}
_BMP = 0x10000


def split_address(address: str, default: int) -> tuple[int, str]:
    """The kind and the name of an address; `default` is the kind of one without a prefix."""
    head, colon, rest = address.partition(":")
    if colon:
        for kind, prefix in _PREFIXES.items():
            if head == prefix[:-1]:
                return kind, rest
    return default, address


def join_address(kind: int, name: str, default: int) -> str:
    """The address of a destination; `split_address` gives its parts again."""
    if kind == default and split_address(name, default) == (default, name):
        return name
    return _PREFIXES.get(kind, "") + name


def import_mark(broker: str, topic: str) -> str:
    """The entry of an origin path that says: a server has imported the message, to this topic.

    No gateway's name begins like it, and it tells others neither the server nor the topic.
    """
    data = f"{broker}\n{topic}".encode("utf-8", "surrogatepass")
    return f"{IMPORT_MARK}{blake2s(data, digest_size=8).hexdigest()}"


def find_name_fault(
    name: str, *, ems: bool, pattern: bool = False, joined: Sequence[str] = ()
) -> tuple[str, str] | None:
    """The rule and the reason why a server would refuse `name` or never answer; None is fine.

    The naming rules are the dialect's business; this is what protects the connection, and what
    a laxer server than EMS lets pass. `joined` are systems that EMS imports from and exports to.
    """
    return next(_find_faults(name, ems=ems, pattern=pattern, joined=joined), None)


def _find_faults(
    name: str, *, ems: bool, pattern: bool, joined: Sequence[str]
) -> Iterator[tuple[str, str]]:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not name:
        yield "empty", "the name is empty"
    elif size > LONGEST_NAME:
        yield "length", f"the name is {size} bytes, limit {LONGEST_NAME}"
    elif name.startswith(ADVISORY) and not pattern:
        yield "reserved", "ActiveMQ says under these names what it has seen"
    elif ems:
        elements = name.split(".")
        yield from _find_ems_faults(name, elements, pattern=pattern)
        yield from _find_joined_faults(elements, joined)


def _find_ems_faults(name: str, elements: list[str], *, pattern: bool) -> Iterator[tuple[str, str]]:
    if name.startswith("$") and not (pattern and name.startswith("$sys.")):
        yield "dollar-first", "EMS keeps names that begin with '$' to itself"
    if "" in elements:
        yield "empty-element", "EMS has no empty elements"
    if len(name) > EMS_NAME or len(elements) > EMS_ELEMENTS:
        yield "length", f"{len(name)} characters in {len(elements)} elements, limit 249 in 64"
    if max(map(len, elements)) > EMS_ELEMENT:
        yield "element-length", f"an element is longer than {EMS_ELEMENT} characters"
    if not pattern and not {"*", ">"}.isdisjoint(elements):
        yield "wildcard", "EMS takes wildcards only in subscriptions"


def _find_joined_faults(elements: list[str], joined: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is legal in EMS, and neither in Rendezvous nor in SmartSockets."""
    if "rv" in joined and elements[0].startswith("_") and not elements[0].startswith(RV_INBOX):
        yield "rv-forbidden-first", "Rendezvous keeps names that begin with '_' to itself"
    if "smartsockets" in joined and SS_REST in elements:
        yield "smartsockets-wildcard-in-name", f"{SS_REST!r} is a wildcard in SmartSockets"


@lru_cache(maxsize=8_192)
def write_name(name: str) -> str | None:
    """The name a property gets in JMS; None when it must not cross.

    What is no Java identifier, a reserved word, a name of JMS or of the gateway's own is spelled
    with `_x` hexadecimal code point `_`, an underline before an `x` too; `read_name` undoes it.
    """
    if name in _OF_ONE_HOP:
        return None
    if name in _SETTABLE or name == GATEWAY_ID:
        return name
    whole = name.upper() in _RESERVED or name.startswith(("JMS", PREFIX))
    parts = [
        f"_x{ord(char):x}_"
        if (not place and whole) or not _is_legal(char, place) or name.startswith("_x", place)
        else char
        for place, char in enumerate(name)
    ]
    return "".join(parts) or "_x_"


@lru_cache(maxsize=8_192)
def read_name(name: str) -> str:
    """The gateway's name of a JMS property; one that no gateway has written stays as it is."""
    if "_x" not in name:
        return name
    plain = _ESCAPE.sub(_unescape, name)
    return plain if write_name(plain) == name else name


def _unescape(match: re.Match[str]) -> str:
    digits = match[1]
    code = int(digits, 16) if digits else 0
    if not digits:
        return ""
    return chr(code) if code <= 0x10FFFF else match[0]  # noqa: PLR2004  # Unicode ends there


def _is_legal(char: str, place: int) -> bool:
    return ord(char) < _BMP and category(char) in (_PART if place else _FIRST)
