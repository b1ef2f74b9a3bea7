"""Addresses of JMS destinations, and the rules that a destination's name must follow.

An address is the name of a destination of the endpoint's default kind. A prefix marks every other
kind: `queue:`, `topic:`, `tempqueue:`, `temptopic:`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2s
from itertools import chain
from typing import Final

from gateway.endpoints.settings.jms import KIND_PREFIXES
from gateway.model.dead_letter_rule import (
    DOLLAR_FIRST,
    ELEMENT_LENGTH,
    EMPTY,
    EMPTY_ELEMENT,
    FORBIDDEN_FIRST,
    LENGTH,
    RESERVED,
    WILDCARD,
    WILDCARD_IN_NAME,
    DeadLetterRule,
)

NO_DESTINATION, TOPIC, QUEUE, TEMPORARY_TOPIC, TEMPORARY_QUEUE = range(5)  # as in BatchPacker.java
DESTINATION_KINDS: Final = {"topic": TOPIC, "queue": QUEUE}
_PREFIXES: Final = dict(
    zip((TOPIC, QUEUE, TEMPORARY_TOPIC, TEMPORARY_QUEUE), KIND_PREFIXES, strict=True)
)
ADVISORY_PREFIX: Final = "ActiveMQ.Advisory."  # even the subscription `>` receives these topics
MAX_NAME_BYTES = 32_000  # ActiveMQ breaks every receiver's connection past 32,767
EMS_MAX_NAME, EMS_MAX_ELEMENTS, EMS_MAX_ELEMENT = 249, 64, 127  # EMS Guide, "Destination Name"
RV_INBOX: Final = "_INBOX"  # Adapter SDK, "Subject Names": the only name with `_` one can send to
SMARTSOCKETS_ALL_LEVELS: Final = "///"  # how EMS writes the wildcard `...` (User's Guide, ch. 16)
IMPORT_MARK: Final = "~imported/"


def split_address(address: str, default: int) -> tuple[int, str]:
    """Return the kind and the name; `default` is the kind of an address without a prefix."""
    head, colon, rest = address.partition(":")
    if colon:
        for kind, prefix in _PREFIXES.items():
            if head == prefix[:-1]:
                return kind, rest
    return default, address


def join_address(kind: int, name: str, default: int) -> str:
    """Return the address of a destination: the inverse of `split_address`."""
    if kind == default and split_address(name, default) == (default, name):
        return name
    return _PREFIXES.get(kind, "") + name


def import_mark(broker: str, topic: str) -> str:
    """Return the entry of an origin path for a message that a server imported to `topic`.

    It is a hash, which discloses neither the server nor the topic. No gateway's name begins with
    `IMPORT_MARK`.
    """
    data = f"{broker}\n{topic}".encode("utf-8", "surrogatepass")
    return f"{IMPORT_MARK}{blake2s(data, digest_size=8).hexdigest()}"


def find_name_error(
    name: str, *, ems: bool, pattern: bool = False, joined: Sequence[str] = ()
) -> tuple[DeadLetterRule, str] | None:
    """Return the rule that `name` breaks and the reason, or None for a usable name.

    The dialect checks the naming rules of a system. These checks protect the connection, and
    refuse names that a server laxer than EMS accepts. `joined` names the systems that EMS imports
    from and exports to.
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    if not name:
        return EMPTY, "the name is empty"
    if size > MAX_NAME_BYTES:
        return LENGTH, f"the name is {size} bytes, limit {MAX_NAME_BYTES}"
    if name.startswith(ADVISORY_PREFIX) and not pattern:
        return RESERVED, "ActiveMQ reserves these names for its advisory messages"
    if not ems:
        return None
    elements = name.split(".")
    errors = _find_ems_errors(name, elements, pattern=pattern)
    return next(chain(errors, _find_joined_errors(elements, joined)), None)


def _find_ems_errors(
    name: str, elements: list[str], *, pattern: bool
) -> Iterator[tuple[DeadLetterRule, str]]:
    if name.startswith("$") and not (pattern and name.startswith("$sys.")):
        yield DOLLAR_FIRST, "EMS reserves names that begin with '$'"
    if "" in elements:
        yield EMPTY_ELEMENT, "EMS has no empty elements"
    if len(name) > EMS_MAX_NAME or len(elements) > EMS_MAX_ELEMENTS:
        yield LENGTH, f"{len(name)} characters in {len(elements)} elements, limit 249 in 64"
    if max(map(len, elements)) > EMS_MAX_ELEMENT:
        yield ELEMENT_LENGTH, f"an element is longer than {EMS_MAX_ELEMENT} characters"
    if not pattern and not {"*", ">"}.isdisjoint(elements):
        yield WILDCARD, "EMS takes wildcards only in subscriptions"


def _find_joined_errors(
    elements: list[str], joined: Sequence[str]
) -> Iterator[tuple[DeadLetterRule, str]]:
    """Yield the rules of Rendezvous and SmartSockets that EMS itself does not have."""
    if "rv" in joined and elements[0].startswith("_") and not elements[0].startswith(RV_INBOX):
        yield FORBIDDEN_FIRST.joined("rv"), "Rendezvous reserves names that begin with '_'"
    if "smartsockets" in joined and SMARTSOCKETS_ALL_LEVELS in elements:
        reason = f"{SMARTSOCKETS_ALL_LEVELS!r} is a wildcard in SmartSockets"
        yield WILDCARD_IN_NAME.joined("smartsockets"), reason
