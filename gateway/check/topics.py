"""Notes about topics and their keys: copies without a key, and topics that metrics mix up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from gateway.config.load import Configuration
from gateway.config.nodes import KeyPath
from gateway.dialects.parts import BOUNDARY
from gateway.routing.route import Route, Target

Doubt: TypeAlias = tuple[KeyPath, str, str]  # the key, the reason, and a hint

_BRACES = re.compile(r"\{[^{}]*\}")


def topics_without_key(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a note for each target whose template has a topic and no key, and no partition."""
    for route, target, text in _templates(configuration):
        if target.partition is None and BOUNDARY not in _BRACES.sub("", text):
            reason = (
                f"route {route.name!r}: the messages to {text!r} at {target.endpoint!r} have no"
                " key, so they keep no order there"
            )
            hint = "write a `key` or a `partition`, such as a capture, if their order matters"
            yield ("routes", route.name, "to"), reason, hint


def colliding_topics(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a note for each fixed topic that differs from another by `.` and `_` only."""
    known: dict[tuple[str, str], str] = {}
    for route, target, text in _templates(configuration):
        topic = text.partition(BOUNDARY)[0]
        other = known.setdefault((target.endpoint, topic.replace(".", "_")), topic)
        if "{" not in topic and other != topic:
            reason = (
                f"route {route.name!r}: the broker has one name in its metrics for the topics"
                f" {other!r} and {topic!r}"
            )
            yield ("routes", route.name, "to"), reason, "use either '.' or '_' in topics"


def _templates(configuration: Configuration) -> Iterator[tuple[Route, Target, str]]:
    """Yield route, target and text of each template of a name with a topic and a key."""
    for route in configuration.routes:
        for target in route.targets:
            if target.renderer.dialect.key is not None:
                for template in target.templates:
                    yield route, target, template.text
