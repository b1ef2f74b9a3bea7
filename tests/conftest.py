"""Fixtures and order of the whole suite: Hypothesis profiles, brokers, one Spark session."""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.brokers.activemq", "tests.brokers.mosquitto", "tests.reconcile.sparking"]

settings.register_profile(
    "default", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A terminated run stops the services that it started, as an interrupted one does.
signal.signal(signal.SIGTERM, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
SLOWEST = (  # files that begin first, so that no worker ends long after the others
    "tests/reconcile/", "tests/chaos/", "tests/brokers/test_jms", "tests/brokers/test_solace",
    "tests/brokers/test_delivery", "tests/conformance/", "tests/brokers/", "tests/archive/",
    "tests/runtime/", "tests/proofs/", "tests/web/",
)  # fmt: skip


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker whole files, and one of them all that use Spark: they share one JVM."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if uses_spark(file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank(item.nodeid.partition("::")[0]))


def rank(file: str) -> int:
    """Return the place of a file in the order of the run; Spark goes first."""
    if uses_spark(file):
        return -1
    return next((at for at, part in enumerate(SLOWEST) if file.startswith(part)), len(SLOWEST))


@cache
def uses_spark(file: str) -> bool:
    return "mark.spark" in (ROOT / file).read_text("utf-8")
