"""Names and patterns of Kafka, `TOPIC:KEY`, in the library's terms."""

from __future__ import annotations

from typing import Final

_OF_THE_SERVERS: Final = (  # topics that no wildcard selects, and no message goes to
    "consumer_offsets",
    "transaction_state",
    "share_group_state",
    "cluster_metadata",
)
INTERNAL: Final = f"^__({'|'.join(_OF_THE_SERVERS)})$"
_WILDCARDS: Final = {"*": "[^.]*", ">": ".*"}


def name_of(topic: str, key: bytes | None) -> str:
    """Return the name of a message.

    A key that is not UTF-8 gets surrogates, which no name has: the message is a dead letter.
    """
    return topic if key is None else f"{topic}:{key.decode('utf-8', 'surrogateescape')}"


def topics_of(pattern: str) -> str:
    """Return the topics of a pattern, of any key: a name, or a regular expression with `^`."""
    topic = pattern.partition(":")[0]
    levels = topic.split(".")
    if _WILDCARDS.keys().isdisjoint(levels):
        return topic
    return "^" + r"\.".join(_WILDCARDS.get(each, each) for each in levels) + "$"
