"""The servers' own topics, which a source does not select and the dialect does not name."""

from __future__ import annotations

import re

from gateway.dialects.systems.kafka import KAFKA
from gateway.endpoints.kafka.names import INTERNAL


def test_a_wildcard_selects_no_topic_that_the_dialect_forbids() -> None:
    """A record of such a topic would become a dead letter for its name."""
    forbidden = [each for each in KAFKA.forbidden_topics if each.startswith("__")]

    assert forbidden
    assert all(re.match(INTERNAL, each) for each in forbidden)
