"""One replay command sends the messages of several routes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.dialects.base import Dialect
from gateway.model.message import Message
from gateway.night.replay import sender
from gateway.night.replay.resend_dead_letters import Resend
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.runtime.record.counters import RouteCounters
from tests.endpoints.exchange import collect
from tests.night.replay.replay_rig import replay_rig

pytestmark = pytest.mark.usefixtures("journals_stay")

CONFIG = """
gateway: {{name: edge}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  erp: {{kind: memory, dialect: ems, broker: erp-{run}}}
defaults: {{route: {{archive_payload: true}}}}
routes:
  orders: {{from: {{endpoint: plant, pattern: orders/#}}, to: {{endpoint: erp}}}}
  ticks: {{from: {{endpoint: plant, pattern: ticks/#}}, to: {{endpoint: erp}}}}
  quiet: {{from: {{endpoint: plant, pattern: quiet/#}}, to: {{endpoint: erp}}}}
archive: {{path: {archive}}}
"""


def test_routes_are_replayed_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.file.write_text(CONFIG.format(run=rig.run, archive=rig.archive))
        rig.relay(Message("ticks/1", b"t"), Message("orders/1", b"o"))
        capsys.readouterr()

        assert rig.replay("--route", "ticks", "--dry-run") == 0
        compared = capsys.readouterr().out
        assert rig.replay("--route", "ticks", "--route", "orders") == 0
        sent = [message.address for message in collect(rig.out, 2)]
        printed = capsys.readouterr()
        assert rig.replay("--route", "quiet", "--route", "absent") == 2
        refused = capsys.readouterr()
        assert rig.replay("--route", "quiet") == 1

        assert sent == ["orders.1", "ticks.1"]
        assert "sent as orders.1, as before" in compared
        assert "sent as ticks.1, as before" in compared
        assert printed.out.splitlines() == [
            "route 'orders':", "1 arrived, 0 did not", "route 'ticks':", "1 arrived, 0 did not",
        ]  # fmt: skip
        assert "no route 'absent' in the configuration" in refused.err
        assert not refused.out  # nothing was sent
        assert "no message of route 'quiet' was received then" in capsys.readouterr().err
        assert [row["route"] for row in rig.rows("delivered") if row["replayed"]] == [
            "ticks", "orders",
        ]  # fmt: skip


def test_what_a_replay_needs_is_made_for_the_routes_that_it_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are gateways with ten thousand routes."""
    made: list[str] = []

    class Counted(RouteCounters):
        def __init__(self) -> None:
            super().__init__()
            made.append("counters")

    class Indexed(Router):
        def __init__(self, dialect: Dialect, routes: Sequence[Route], *known: Any) -> None:  # noqa: ANN401
            super().__init__(dialect, routes, *known)
            made.append("router")

    monkeypatch.setattr(sender, "RouteCounters", Counted)
    monkeypatch.setattr(sender, "Router", Indexed)
    with replay_rig(tmp_path) as rig:
        rig.file.write_text(CONFIG.format(run=rig.run, archive=rig.archive))
        rig.relay(Message("ticks/1", b"t"), Message("orders/1", b"o"))
        made.clear()

        assert rig.replay("--route", "ticks") == 0
        assert sorted(made) == ["counters", "counters", "router", "router"]  # of two routes
        made.clear()
        with closing(sqlite3.connect(":memory:")) as database:
            Resend(load(rig.file), database).close()

        assert not made  # no letter needs one
