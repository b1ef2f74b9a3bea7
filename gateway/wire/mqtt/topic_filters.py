"""Topic filters of MQTT: which are legal, and which topics they select (MQTT 5.0, 4.7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gateway.wire.mqtt.packet_fields import MAX_TEXT

SHARED = "$share/"
_LEVEL = r"(?:\+|[^+#/\0\ud800-\udfff]*)"  # a surrogate has no form in UTF-8
_is_filter = re.compile(rf"(?:{_LEVEL}/)*(?:#|{_LEVEL})").fullmatch


def is_legal_filter(topic_filter: str) -> bool:
    """Return whether a broker accepts the filter (MQTT 5.0, 4.7.1 and 4.7.3)."""
    return _is_filter(topic_filter) is not None and 0 < len(topic_filter.encode()) <= MAX_TEXT


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


def any_selects(topic_filters: Iterable[str], topic: str) -> bool:
    return any(selects(each, topic) for each in topic_filters)


def inner_filter(topic_filter: str) -> str:
    """Return the filter of a shared subscription without its group (MQTT 5.0, 4.8.2)."""
    return topic_filter.split("/", 2)[2] if topic_filter.startswith(SHARED) else topic_filter
