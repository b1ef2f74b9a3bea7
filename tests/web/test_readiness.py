from __future__ import annotations

from dataclasses import fields

import pytest

from gateway.runtime.status import Status
from gateway.web.readiness import reasons, warnings
from tests.web.status_samples import endpoint, route, status

LOST = endpoint(connection="lost", reason="plant: gone")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(status(), [], id="all is well"),
        pytest.param(
            status(endpoints=(LOST,)), ["endpoint plant (source): lost, plant: gone"], id="lost"
        ),
        pytest.param(
            status(endpoints=(endpoint(connection="connecting"),)),
            ["endpoint plant (source): connecting"],
            id="not yet there",
        ),
        pytest.param(status(routes=(route(heartbeat_age=29.9),)), [], id="two heartbeats missed"),
        pytest.param(
            status(routes=(route(heartbeat_age=30.0), route(heartbeat_age=30.0))),
            ["route telemetry: no heartbeat for more than 30 s"],
            id="three missed, one reason for all sources",
        ),
        pytest.param(status(endpoints=(endpoint(spool_share=0.79),)), [], id="spool below"),
        pytest.param(
            status(endpoints=(endpoint(spool_share=0.8),)),
            ["endpoint plant: its spool is 80 % full, limit 80 %"],
            id="spool at its limit",
        ),
        pytest.param(status(archive_failure="disk full"), ["archive: disk full"], id="archive"),
        pytest.param(status(spool_failure="disk full"), ["spool: disk full"], id="spool fails"),
        pytest.param(status(thread_failure="it ended"), ["it ended"], id="a thread ended"),
    ],
)
def test_every_reason_is_said(now: Status, expected: list[str]) -> None:
    assert list(reasons(now, 80)) == expected


FAULTS = [each.name for each in fields(Status) if each.name.endswith(("_failure", "_refused"))]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_a_gateway_is_a_reason_or_a_warning(fault: str) -> None:
    now = status(**{fault: "the disk is full"})
    said = [*reasons(now, 80), *warnings(now)]

    assert len(said) == 1
    assert "the disk is full" in said[0]
