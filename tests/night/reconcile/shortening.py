"""Archives with shortened names, written with the gateway's own translator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.archive.journal.records import Rows
from gateway.archive.name_store import NameStore
from gateway.dialects.registry import DIALECTS
from gateway.translate.names import OnTooLong, Renderer, Translator
from gateway.translate.shorten import ShortNamesInMemory
from tests.archive.samples import NOON, archive, delivered

DAY_LONG = 24 * 3_600_000_000  # microseconds
LONG = "plant/" + "/".join(f"line-{number:03}" for number in range(60))


def long_name(number: int) -> str:
    """A topic of MQTT that is too deep and too long for the other systems."""
    return f"{LONG}/{number}"


class Sender:
    """One gateway: records its shortened names, and collects delivered rows until `close`."""

    def __init__(self, root: Path, gateway: str = "east", *, noting: bool = True) -> None:
        self._root, self._gateway = root, gateway
        self._names = NameStore(root, gateway)
        self._dictionary = self._names if noting else ShortNamesInMemory()
        self._rows: list[Rows] = []

    def send(self, source: str, target: str, system: str, times: Sequence[int] = (NOON,)) -> str:
        """Add deliveries of the MQTT topic `source` to `system`; return the name there."""
        made = self._made(system).name(source)
        self.put(source, target, system, made, times)
        return made

    def put(
        self, source: str, target: str, system: str, name: str, times: Sequence[int] = (NOON,)
    ) -> None:
        """Add deliveries with any name."""
        for time in times:
            own = {"system": system, "name": name, "source_name": source}
            self._rows.append(delivered([len(self._rows)], target, time, received=time, **own))

    def note(self, source: str, system: str) -> str:
        """Shorten and record a name that is never sent."""
        return self._made(system).name(source)

    def close(self) -> None:
        self._names.commit()
        self._names.close()
        if self._rows:
            archive(self._root, *self._rows, gateway=self._gateway)

    def _made(self, system: str) -> Translator:
        target = DIALECTS[system]
        return Translator(
            DIALECTS["mqtt"],
            Renderer(target, on_too_long=OnTooLong.SHORTEN, dictionary=self._dictionary),
        )
