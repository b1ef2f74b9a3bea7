"""Names of Kafka, `TOPIC:KEY`, in the library's terms."""

from __future__ import annotations


def name_of(topic: str, key: bytes | None) -> str:
    """Return the name of a message.

    A key that is no UTF-8 gets surrogates, which no name has: the message is a dead letter.
    """
    return topic if key is None else f"{topic}:{key.decode('utf-8', 'surrogateescape')}"


def topics_of(pattern: str) -> list[str]:
    """Return the topics of a pattern: names, and regular expressions that begin with `^`."""
    topic = pattern.partition(":")[0]
    levels = topic.split(".")
    if not {"*", ">"} & {*levels}:
        return [topic]
    parts = [{"*": "[^.]+", ">": ".+"}.get(each, each) for each in levels]
    return ["^" + "\\.".join(parts) + "$"]
