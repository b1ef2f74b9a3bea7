from __future__ import annotations

from typing import Any

from gateway.runtime.status import Status
from gateway.web.snapshot import StatusSnapshot, latest_refusals, snapshot_json
from gateway.web.status_cache import redacted
from tests.web.status_samples import START, endpoint, refusal, route, status


def seen(now: Status) -> Any:  # noqa: ANN401  # JSON
    return snapshot_json(
        StatusSnapshot(now, START + 60.0, "gateway.yaml", (), latest_refusals(now.routes))
    )


def test_a_route_with_several_sources_is_one_entry() -> None:
    parts = (
        route(guarantee="exactly_once"),
        route(source="other x/#", guarantee="at_most_once", targets=("office", "office:2")),
    )

    (only,) = seen(status(routes=parts))["routes"]

    assert only["sources"] == ["plant line/{line}/{rest...}", "other x/#"]
    assert only["targets"] == ["office", "office:2"]
    assert only["target_names"] == ["office hall/{line}/{rest...}"]
    assert only["guarantee"] == "at_most_once"
    assert only["received"] == 10


def test_the_lag_is_that_of_the_slowest_source_of_the_route() -> None:
    ends = (endpoint("office", "sink", spooled_age=9.5),)

    shown = seen(status(endpoints=ends, routes=(route(lag=1.0), route(lag=4.0), route("other"))))

    assert [each["lag"] for each in shown["routes"]] == [4.0, 0.0]


def test_the_latest_refusals_of_all_routes_come_first_and_are_bounded() -> None:
    routes = tuple(
        route(f"r{i}", refusals=tuple(refusal(f"n{i}", START + 10 * j + i) for j in range(20)))
        for i in range(5)
    )

    shown = seen(status(routes=routes))["refusals"]

    assert len(shown) == 50
    assert [each["time"] for each in shown] == sorted((e["time"] for e in shown), reverse=True)
    assert (shown[0]["route"], shown[0]["name"]) == ("r4", "n4")


def test_a_refusal_says_what_to_do() -> None:
    removed = refusal(rule="target-removed")

    (shown,) = seen(status(routes=(route(refusals=(removed,)),)))["refusals"]

    assert shown["advice"] == "configure the target again"


def test_long_texts_are_cut() -> None:
    long = refusal("n" * 1_000, reason="r" * 1_000)

    (shown,) = seen(status(routes=(route(refusals=(long,)),)))["refusals"]

    assert (len(shown["name"]), len(shown["reason"])) == (300, 300)


def test_a_secret_in_the_error_of_a_broker_is_redacted() -> None:
    leaking = status(
        endpoints=(endpoint(connection="lost", reason="login as x with hunter22 failed"),),
        archive_failure="hunter22",
        spool_failure="hunter22",
        thread_failure="hunter22",
    )

    clean = redacted(leaking, lambda text: text.replace("hunter22", "***"))

    assert "hunter22" not in str(clean)
    assert clean.endpoints[0].reason == "login as x with *** failed"
