"""An archive of a stopped gateway, its brokers in memory, and the command that replays it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.cli import main
from gateway.config.load import load
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import (
    DeliveryMode,
    Headers,
    Message,
)
from gateway.night.archive.lookup.row_files import Row
from gateway.runtime.gateway import Gateway
from tests.archived import archived, convert_journals
from tests.endpoints.exchange import collect, send
from tests.waiting import PATIENCE, until

CONFIG = """
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  erp: {{kind: memory, dialect: ems, broker: erp-{run}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: erp, template: "{prefix}.{{rest...}}"}}
    archive_payload: {kept}
    {more}
archive: {{path: {archive}}}
"""


class ReplayRig:
    """A configuration with a sink to its source and a source at its target."""

    def __init__(self, folder: Path) -> None:
        self.run = uuid4().hex
        self.archive = folder / "archive"
        self.file = folder / "gateway.yaml"
        self.write()
        plant = MemorySettings(name="in", dialect="mqtt", broker=f"plant-{self.run}")
        erp = MemorySettings(name="out", dialect="ems", broker=f"erp-{self.run}")
        self.into, self.out = make_sink(plant), make_source(erp, [Subscription(">")])

    def write(self, prefix: str = "ORDERS", *, kept: str = "true", more: str = "") -> None:
        text = CONFIG.format(
            run=self.run, archive=self.archive, prefix=prefix, kept=kept, more=more
        )
        self.file.write_text(text)

    def relay(self, *messages: Message) -> list[Message]:
        """Send the messages through a gateway that runs meanwhile; return those delivered."""
        with self.running():
            send(self.into, *messages)
            return collect(self.out, len(messages))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a gateway that is connected, and stop it at the end."""
        gateway = Gateway(load(self.file))
        gateway.start()
        until(lambda: all(state.connection.value == "connected" for state in gateway.states))
        yield
        assert gateway.stop(PATIENCE)
        convert_journals(self.archive)  # a stop leaves some on a slow machine

    def replay(self, *options: str, archive: str = "") -> int:
        soon = datetime.now(UTC) + timedelta(minutes=1)
        early = soon - timedelta(hours=1)
        span = ["--from", early.isoformat(), "--to", soon.isoformat()]
        command = ["replay", str(archive or self.archive), "--config", str(self.file)]
        code = main([*command, "--route", "orders", *span, *options])
        if not archive and code != 2:
            convert_journals(self.archive)
        return code

    def reconciled(self, missing: Sequence[bytes]) -> None:
        """Write the table of exceptions of a reconciliation."""
        rows = [
            {"class": "missing", "route": "orders", "target": "erp", "id": each.hex()}
            for each in missing
        ]
        for day in {datetime.now(UTC).date(), (datetime.now(UTC) - timedelta(hours=1)).date()}:
            folder = self.archive / "_reconciled" / f"date={day}" / "exceptions"
            folder.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows), folder / "part-0.parquet")

    def rows(self, leg: str) -> list[Row]:
        rows = archived(self.archive.parent)
        return sorted((row for row in rows if row["leg"] == leg), key=lambda row: row["id"])


@contextmanager
def replay_rig(folder: Path) -> Iterator[ReplayRig]:
    rig = ReplayRig(folder)
    endpoints: list[Sink | Source] = [rig.into, rig.out]
    for endpoint in endpoints:
        endpoint.open()
    try:
        yield rig
    finally:
        for endpoint in endpoints:
            endpoint.close()


RICH = Headers(
    mode=DeliveryMode.AT_LEAST_ONCE, priority=7, correlation_id=b"\x00\x01", content_type="a/b",
    properties={"count": 3, "price": 1.5, "flag": True, "word": "3"},
)  # fmt: skip
MESSAGES = [
    Message("orders/1", b"\xff\x00", RICH),
    Message("orders/2", "text", RICH),
    Message("orders/3", {"qty": 2, "ok": True}),
]
