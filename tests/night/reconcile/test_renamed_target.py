"""A night over copies that waited for a target while it got another name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Message
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.listening import free_port
from tests.archived import archived, convert_journals
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

CONFIG = """\
gateway: {{name: edge}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  {name}: {{{how}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: {name}, template: "far/{{rest...}}"}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
"""


@contextmanager
def started(folder: Path, run: str, name: str, how: str) -> Iterator[Gateway]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(run=run, name=name, how=how, folder=folder))
    gateway = Gateway(load(file))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop(PATIENCE)
        convert_journals(folder / "archive")


def test_the_copies_arrived_and_none_is_in_flight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The outcome has the label that the receipt names, and its name follows from those routes."""
    run = uuid4().hex
    plant = MemorySettings(name="in", dialect="mqtt", broker=f"plant-{run}")
    far = MemorySettings(name="out", dialect="mqtt", broker=f"far-{run}")
    into, out = make_sink(plant), make_source(far, [Subscription("#")])
    away = f"kind: mqtt, host: 127.0.0.1, port: {free_port()}"
    other = f"kind: memory, dialect: mqtt, broker: far-{run}"
    here = f"{other}, was: old"

    def reconciled() -> list[str]:
        (day,) = {_day(row["time"]) for row in archived(tmp_path)}
        root = str(tmp_path / "archive")
        main(["reconcile", root, "--date", str(day), "--master", "local[1]"])
        return capsys.readouterr().out.splitlines()

    with opened(into), opened(out):
        with started(tmp_path, run, "old", away) as gateway:
            send(into, Message("orders/1", b"one"), Message("orders/2", b"two"))
            until(lambda: gateway.counters["orders"].spooled == 2)
        waiting = reconciled()
        with started(tmp_path, run, "new", other):
            pass
        stranded = reconciled()
        with started(tmp_path, run, "new", here):
            assert [each.address for each in collect(out, 2)] == ["far/1", "far/2"]
        arrived = reconciled()

    assert "in flight 2" in waiting
    text = "route orders, target old: 2 in flight for a target that is no longer configured"
    assert [text in lines for lines in (waiting, stranded)] == [False, True]
    assert {"Clean: all 2 deliveries arrived", "verdict: clean"} <= set(arrived), arrived
    assert {"in flight 0", "unexpected 0"} <= set(arrived)


def _day(time: object) -> date:
    assert isinstance(time, datetime)
    return time.date()
