"""Where a value stands, for whoever finds a fault in it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.config.nodes import KeyPath
from gateway.config.value_reader import ConfigReader


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value: its key, and the reader of its file."""

    reader: ConfigReader
    at: KeyPath

    def __getitem__(self, key: str | int) -> Place:
        return Place(self.reader, (*self.at, key))

    def report(self, rule: str, reason: str, hint: str = "") -> None:
        """Add a finding as `ConfigReader.report` does."""
        self.reader.report(self.at, rule, reason, hint)
