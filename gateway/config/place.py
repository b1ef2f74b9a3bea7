"""Where a value stands, for whoever finds a fault in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import yaml

from gateway.config.nodes import KeyPath
from gateway.config.value_reader import ConfigReader
from gateway.errors import SubjectError, TranslationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value: its key, and the reader of its file."""

    reader: ConfigReader
    at: KeyPath

    def __getitem__(self, key: str | int) -> Place:
        return Place(self.reader, (*self.at, key))

    def read(
        self, node: yaml.Node, kind: type[T], preset: Mapping[str, object] | None = None
    ) -> T | None:
        """Return the value of `node`, which stands here, as `ConfigReader.read` does."""
        return self.reader.read(node, kind, self.at, preset)

    def report(self, rule: str, reason: str, hint: str = "") -> None:
        """Add a finding as `ConfigReader.report` does."""
        self.reader.report(self.at, rule, reason, hint)

    def parse(self, parse: Callable[..., T], text: str, *more: object, hint: str = "") -> T | None:
        """Return what `parse` makes of the text; None when it is illegal, which is reported."""
        try:
            return parse(text, *more)
        except (SubjectError, TranslationError) as error:
            self.report(error.rule, str(error), hint)
            return None
