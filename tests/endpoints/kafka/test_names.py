"""The servers' own topics, which a source does not select and the dialect does not name."""

from __future__ import annotations

import re

import pytest

from gateway.dialects.systems.kafka import KAFKA
from gateway.endpoints.kafka.names import INTERNAL
from gateway.endpoints.kafka.sink import place_of
from gateway.errors import TranslationError


def test_a_wildcard_selects_no_topic_that_the_dialect_forbids() -> None:
    """A record of such a topic would become a dead letter for its name."""
    forbidden = [each for each in KAFKA.forbidden_topics if each.startswith("__")]

    assert forbidden
    assert all(re.match(INTERNAL, each) for each in forbidden)


@pytest.mark.parametrize("topic", KAFKA.forbidden_topics)
def test_a_sink_sends_to_none_of_them_whatever_the_dialect(topic: str) -> None:
    with pytest.raises(TranslationError, match="no client writes"):
        place_of(f"{topic}:key")
