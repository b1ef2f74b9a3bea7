"""Topic filters of MQTT: which are legal, and which topics they select (MQTT 5.0, 4.7)."""

from __future__ import annotations

from gateway.wire.mqtt.packet_fields import MAX_TEXT

SHARED = "$share/"


def is_legal_filter(topic_filter: str) -> bool:
    """Return whether a broker accepts the filter (MQTT 5.0, 4.7.1 and 4.7.3)."""
    levels = topic_filter.split("/")
    wildcards_alone = all(len(level) == 1 for level in levels if "+" in level or "#" in level)
    try:
        size = len(topic_filter.encode())
    except UnicodeEncodeError:
        return False
    return (
        0 < size <= MAX_TEXT
        and "\0" not in topic_filter
        and wildcards_alone
        and "#" not in levels[:-1]
    )


def selects(topic_filter: str, topic: str) -> bool:
    """Return whether the filter selects the topic (MQTT 5.0, 4.7.1 and 4.7.2)."""
    levels, names = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and levels[0] in ("+", "#"):
        return False
    for position, level in enumerate(levels):
        if level == "#":
            return True
        if position >= len(names) or level not in ("+", names[position]):
            return False
    return len(levels) == len(names)


def inner_filter(topic_filter: str) -> str:
    """Return the filter of a shared subscription without its group (MQTT 5.0, 4.8.2)."""
    return topic_filter.split("/", 2)[2] if topic_filter.startswith(SHARED) else topic_filter
