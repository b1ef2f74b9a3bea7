"""An archive of three gateways in a chain: plant -> bus -> core -> hub -> office."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.layout import JournalName
from gateway.archive.routes import write_routes
from gateway.archive.storage import LocalStorage
from gateway.config.load import load
from gateway.night.archive.seals.seal import End
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.routing.name_rules import to_rules
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import NOON, archive, delivered, identity, received

SECOND = 1_000_000
HOUR = 3600 * SECOND
SINCE = NOON - 10 * HOUR  # of the routes
CLOSED = NOON + 6 * HOUR  # of the journals

_CONFIG = """\
endpoints:
  {source}: {{kind: memory, dialect: {source_dialect}, headers: {ids}, broker_id: {source}}}
  {target}: {{kind: memory, dialect: {target_dialect}, headers: {ids}, broker_id: {target}}}
routes:
  {route}:
    from: {{endpoint: {source}, pattern: "{pattern}"{more}}}
    to: {{endpoint: {target}, template: "{template}", add_message_id: {ids}}}
"""
_STAGES: Mapping[str, Mapping[str, str]] = {
    "plant": {
        "route": "up", "source": "field", "source_dialect": "mqtt", "pattern": "a/{rest...}",
        "target": "bus", "target_dialect": "mqtt", "template": "bus/{rest...}",
    },
    "core": {
        "route": "across", "source": "bus", "source_dialect": "mqtt", "pattern": "bus/{rest...}",
        "target": "hub", "target_dialect": "ems", "template": "HUB.{rest...}",
    },
    "office": {
        "route": "down", "source": "hub", "source_dialect": "ems", "pattern": "HUB.{rest...}",
        "target": "desk", "target_dialect": "ems", "template": "D.{rest...}",
    },
}  # fmt: skip
_NAMES = {"field": "a/", "bus": "bus/", "hub": "HUB.", "desk": "D."}


@dataclass
class Chain:
    """Rows by gateway; with `ids` every message carries its trace id.

    With a `share`, the gateways `core` and `spare` divide the messages of the bus.
    """

    ids: bool = True
    share: str = ""
    rows: dict[str, list[Rows]] = field(default_factory=lambda: defaultdict(list))
    started: dict[str, int] = field(default_factory=dict)

    def receive(self, gateway: str, number: int, at: int, **more: Cell) -> None:
        stage = _STAGES["core" if gateway == "spare" else gateway]
        facts: dict[str, Cell] = {
            "route": stage["route"], "endpoint": stage["source"], "system": "mqtt",
            "name": f"{_NAMES[stage['source']]}n{number}", "received": at, **self._trace(number),
        }  # fmt: skip
        self.rows[gateway].append(received([number], [stage["target"]], at, **{**facts, **more}))

    def deliver(self, gateway: str, number: int, at: int, **more: Cell) -> None:
        stage = _STAGES[gateway]
        facts: dict[str, Cell] = {
            "route": stage["route"], "name": f"{_NAMES[stage['target']]}n{number}",
            "source_name": f"{_NAMES[stage['source']]}n{number}", "received": at - 1_000,
            **self._trace(number),
        }  # fmt: skip
        self.rows[gateway].append(delivered([number], stage["target"], at, **{**facts, **more}))

    def relay(self, gateway: str, number: int, at: int, **more: Cell) -> None:
        """Receive and deliver a message, 1 ms later."""
        self.receive(gateway, number, at, **more)
        self.deliver(gateway, number, at + 1_000, **more)

    def message(self, number: int, at: int) -> None:
        """Relay a message through all three gateways."""
        for step, gateway in enumerate(_STAGES):
            self.relay(gateway, number, at + 10_000 * step)

    def write(self, root: Path, *, source: str = "", through_writer: bool = False) -> None:
        """Write the segments and the routes; `source` are further settings of every source.

        Only `through_writer` do the gateways have heads.
        """
        stages = dict(_STAGES)
        if self.share:
            pattern = self.share + _STAGES["core"]["pattern"]
            stages["core"] = stages["spare"] = {**_STAGES["core"], "pattern": pattern}
        for gateway, stage in stages.items():
            file = root.with_name(f"{gateway}.yaml")
            file.write_text(_CONFIG.format(**stage, ids=str(self.ids).lower(), more=source))
            rules = to_rules(load(file).routes)
            write_routes(root, gateway, rules, self.started.get(gateway, SINCE))
            if through_writer:
                archive(root, *self.rows[gateway], gateway=gateway, clock=lambda: CLOSED)
            elif self.rows[gateway]:
                table, _ = to_table(self.rows[gateway])
                table = table.set_column(0, "gateway", pa.repeat(gateway, table.num_rows))
                stem = str(JournalName(gateway, NOON, 1))
                write_sealed(
                    LocalStorage(root), stem, sort_rows(table), gateway=gateway, previous=None,
                    opened=None, closed=CLOSED, end=End.STOPPED,
                )  # fmt: skip

    def _trace(self, number: int) -> dict[str, Cell]:
        return {"trace": identity(number, 7)} if self.ids else {}
