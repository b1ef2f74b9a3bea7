"""Archives with shortened names, made by what shortens names in a gateway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.archive.journal.records import Rows
from gateway.archive.lookup.name_file import NameFile
from gateway.dialects.registry import DIALECTS
from gateway.translate.names import Length, Translator
from gateway.translate.shorten import Shortened
from tests.archive.samples import NOON, archive, delivered

DAY_LONG = 24 * 3_600_000_000  # microseconds
LONG = "plant/" + "/".join(f"line-{number:03}" for number in range(60))


def long_name(number: int) -> str:
    """A topic of MQTT that is too deep and too long for the other systems."""
    return f"{LONG}/{number}"


class Sender:
    """What one gateway sends; mutable, it writes names down and collects rows until `close`."""

    def __init__(self, root: Path, gateway: str = "east", *, noting: bool = True) -> None:
        self._root, self._gateway = root, gateway
        self._names = NameFile(root, gateway)
        self._dictionary = Shortened(self._names.write if noting else None)
        self._rows: list[Rows] = []

    def send(self, source: str, target: str, system: str, times: Sequence[int] = (NOON,)) -> str:
        """Deliveries of `source`, a topic of MQTT, as `system` gets it; the name it got there."""
        made = self._made(system).name(source)
        self.put(source, target, system, made, times)
        return made

    def put(
        self, source: str, target: str, system: str, name: str, times: Sequence[int] = (NOON,)
    ) -> None:
        """Deliveries under any name."""
        for time in times:
            own = {"system": system, "name": name, "source_name": source}
            self._rows.append(delivered([len(self._rows)], target, time, received=time, **own))

    def note(self, source: str, system: str) -> str:
        """Shorten a name that is then never sent."""
        return self._made(system).name(source)

    def close(self) -> None:
        self._names.close()
        if self._rows:
            archive(self._root, *self._rows, gateway=self._gateway)

    def _made(self, system: str) -> Translator:
        target = DIALECTS[system]
        return Translator(
            DIALECTS["mqtt"], target, length=Length.SHORTEN, dictionary=self._dictionary
        )
