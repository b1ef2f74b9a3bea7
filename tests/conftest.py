"""Fixtures and order of the whole suite: Hypothesis profiles, brokers, one Spark session."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.brokers.activemq", "tests.brokers.mosquitto", "tests.reconcile.sparking"]

settings.register_profile(
    "default", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A terminated run stops the services that it started, as an interrupted one does.
signal.signal(signal.SIGTERM, signal.default_int_handler)

SLOWEST = (  # files that begin first, so that no worker ends long after the others
    "reconcile/", "chaos/", "brokers/test_jms", "brokers/test_solace", "brokers/test_delivery",
    "conformance/", "brokers/", "archive/", "runtime/", "proofs/", "web/",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each worker whole files, and one of them all Spark tests: they share one JVM."""
    for item in items:
        spark = item.get_closest_marker("spark") is not None
        group = "spark" if spark else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if item.get_closest_marker("spark") is not None:
        return -1
    path = item.path.as_posix().partition("/tests/")[2]
    return next((at for at, part in enumerate(SLOWEST) if path.startswith(part)), len(SLOWEST))
