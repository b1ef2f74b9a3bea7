"""The documented limits of a source's caches are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from gateway.endpoints.mqtt import kept_session
from gateway.routing import router
from gateway.runtime.delivery import duplicates, loop_limit
from gateway.runtime.inbound import copy_maker

DOCS: Final = Path(__file__).parents[1] / "docs"
CACHES: Final = (
    router.MAX_CACHE_SIZE,
    router.MAX_FIELDS_SIZE,
    router.MAX_WIRE_NAMES_SIZE,
    duplicates.MAX_SIZE,
    loop_limit.MAX_SIZE,
    copy_maker.MAX_CACHE_SIZE,
)


def test_the_sum_of_the_caches_of_a_source_is_documented() -> None:
    text = " ".join((DOCS / "security.md").read_text("utf-8").split())

    assert (
        f"Each further source adds up to {sum(CACHES) >> 20} MiB of caches,"
        f" one with MQTT 3.1.1 {kept_session.MAX_RETAINED_SIZE >> 20} more"
    ) in text


def test_every_cache_of_a_source_has_its_row() -> None:
    text = (DOCS / "delivery.md").read_text("utf-8")
    limits = re.findall(r"\| (\d+) MiB for each source\b", text)

    assert sorted(map(int, limits)) == sorted(size >> 20 for size in CACHES)
