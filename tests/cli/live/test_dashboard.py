"""The status on a terminal: trouble comes first, names are complete, and it fits the screen."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gateway.cli.live.dashboard import dashboard
from gateway.runtime.status import PairStatus, Status
from gateway.terminal.console import print_lines, unlimited_off_terminal
from gateway.web.snapshot import snapshot_json
from tests.web.status_samples import (
    HOLDER,
    STANDBY,
    SUSPECTED,
    FakeStatus,
    busy,
    endpoint,
    refusal,
    route,
    status,
)

LONG = "plant-events-of-line-12-in-hamburg-north"  # 40 characters
LOST = endpoint(f"{LONG}-ems", "sink", system="ems", connection="lost", reason="gone: " * 20)
IMPORTED = status(
    endpoints=(endpoint(), LOST),
    routes=tuple(
        route(f"{LONG}-{n:02}", received=1_234_567, delivered=1_234_000, heartbeat_age=3.0)
        for n in range(30)
    ),
)


def shown(sample: Status, width: int | None, **limits: int) -> list[str]:
    """Return the lines on a terminal of this width, or in a file when it is None."""
    text = io.StringIO()
    terminal = width is not None
    console = Console(file=text, width=width or 80, force_terminal=terminal, color_system=None)
    unlimited_off_terminal(console)
    now = snapshot_json(FakeStatus(sample).snapshot())
    print_lines(dashboard(now, None, console, **limits), console)
    return text.getvalue().splitlines()


def routes_of(lines: list[str]) -> list[str]:
    """Return the names of the routes, in order."""
    start = next(n for n, line in enumerate(lines) if line.startswith("route"))
    return [line.split()[0] for line in lines[start + 1 :] if line and line[0] not in " ."]


def test_a_suspected_loop_is_said_beside_the_reasons() -> None:
    lines = shown(status(suspected_loops=(SUSPECTED, replace(SUSPECTED, name="\x1b[2J"))), None)

    assert lines[1:3] == [
        "    a loop is suspected since 2026-09-21 14:13:20 UTC: route telemetry from plant,"
        f' "{name}" is its heartbeat, and came back'
        for name in ("line/1", "\\x1b[2J")
    ]


def test_a_refused_reload_is_said() -> None:
    lines = shown(status(reload_refused="gateway.yaml:3:1: prot"), None)

    assert lines[1].endswith("the configuration before it runs: gateway.yaml:3:1: prot")


def test_routes_in_trouble_come_first() -> None:
    routes = (
        route("quiet"),
        route("refusing", rules={"too-long": 7}),
        route("stuck", heartbeat_age=99.0),
        route("lagging", lag=120.0),
    )

    lines = shown(status(routes=routes), 80)

    assert routes_of(lines) == ["stuck", "lagging", "refusing", "quiet"]


def test_endpoints_without_a_connection_come_first() -> None:
    spooling = endpoint("spooling", "sink", spooled_messages=3)
    lost = endpoint("lost", "sink", connection="refused")

    lines = shown(status(endpoints=(endpoint(), spooling, lost)), 80)

    start = next(n for n, line in enumerate(lines) if line.startswith("endpoint "))
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == [
        "lost", "spooling", "plant",
    ]  # fmt: skip


def test_a_terminal_has_the_first_routes_and_counts_the_others() -> None:
    lines = shown(busy(1), 80, rows=20)

    assert len(routes_of(lines)) == 20
    assert "... and 980 more routes; --all shows them" in lines


def test_a_file_has_every_route() -> None:
    assert len(routes_of(shown(busy(1), None))) == 1_000


@pytest.mark.parametrize("width", [60, 80, 120])
def test_imported_names_are_complete(width: int) -> None:
    lines = shown(IMPORTED, width)

    assert len([line for line in lines if line.startswith(f"{LONG}-")]) == 30 + 1
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)


def test_a_file_has_one_line_for_each_row() -> None:
    lines = shown(IMPORTED, None)

    heads = next(line for line in lines if line.startswith("endpoint ")).split()
    assert heads == ["endpoint", "side", "connection", "duration", "reason"]
    assert any(line.startswith(f"{LONG}-ems") and "gone: gone:" in line for line in lines)


@pytest.mark.parametrize("height", [24, 40, 100])
@pytest.mark.parametrize("sample", [IMPORTED, busy(1), status()], ids=["imported", "busy", "idle"])
def test_a_screen_is_not_exceeded(sample: Status, height: int) -> None:
    refused = route("refused", rules={"too-long": 9}, refusals=(refusal("a/" * 60),) * 9)
    sample = replace(sample, routes=(*sample.routes, refused))

    lines = shown(sample, 80, height=height)

    assert len(lines) <= height
    assert any(line.startswith("refused") for line in lines)


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        (HOLDER, "a is the holder for 60 s, lease 7; b waits"),
        (replace(HOLDER, standby=()), "a is the holder for 60 s, lease 7; no standby waits"),
        (
            STANDBY,
            "b is the standby for 60 s, lease 6; a is active; lease: the disk is away",
        ),
    ],
)
def test_the_part_in_a_pair_is_a_line(pair: PairStatus, line: str) -> None:
    assert line in shown(status(pair=pair), 80)
    assert not [each for each in shown(status(), 80) if "lease" in each]


def test_messages_that_were_left_out_have_a_column() -> None:
    """A column without any value is hidden."""
    for sample, shows in ((route(), False), (route(thinned=1_234, unselected=5), True)):
        lines = shown(status(routes=(sample,)), 160)
        (title,) = (line for line in lines if line.startswith("route"))
        assert ("thinned" in title, "not selected" in title) == (shows, shows)
        assert any("1,234" in line for line in lines) == shows


def test_an_endpoint_says_what_is_pending_in_the_words_of_the_page() -> None:
    ends = (
        endpoint(backlog=1_200),
        endpoint("office", "sink", held=2_048),
        endpoint("erp", "sink", held=2_048, spooled_messages=1_234, spooled_bytes=10_240),
    )

    lines = shown(status(endpoints=ends), None)

    (title,) = (line for line in lines if line.startswith("endpoint "))
    assert "pending" in title.split()
    pending = {line.split()[0]: line[title.index("pending") :].strip() for line in lines[3:7]}
    assert pending["plant"] == "1,200 at the broker"
    assert pending["office"] == "2 KiB in memory"
    assert pending["erp"] == "2 KiB in memory, 1,234 on disk (10 KiB, oldest 0 s)"


def test_a_stuck_flow_is_a_line() -> None:
    """Routes that are stuck for one reason share the line."""
    ends = (endpoint(), endpoint("office", "sink", silence=12.0))
    silent = [route(f"line-{number}") for number in range(5)]
    for routes, names in (
        (silent[:2], "line-0, line-1"),
        (silent, "line-0, line-1, line-2 and 2 more routes"),
    ):
        lines = shown(status(endpoints=ends, routes=tuple(routes)), None)

        assert lines[1].strip() == f"stuck, no answer from office for 12 s: {names}"

    assert not any("stuck" in line for line in shown(status(), None))


def test_a_route_without_heartbeats_is_said_once() -> None:
    late = [route(f"line-{number}", heartbeat_age=99.0) for number in range(2)]
    ends = (endpoint(), endpoint("office", "sink"))

    lines = shown(status(endpoints=ends, routes=tuple(late)), None)

    assert [line.strip() for line in lines if "no heartbeat" in line] == [
        f"route line-{number}: no heartbeat for more than 30 s" for number in range(2)
    ]
    assert not any("stuck" in line for line in lines)
