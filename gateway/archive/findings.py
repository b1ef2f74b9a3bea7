"""Findings about an archive: a rule, a file or folder, a text, and a weight."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    """The effect of a finding on the verdict."""

    ERROR = "error"  # the numbers may be wrong, so the verdict is not clean
    WARNING = "warning"  # the verdict ignores it


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of the archive; `rule` is the short name for scripts."""

    weight: Weight
    rule: str
    place: str  # a file or folder, relative to the archive
    text: str

    def __str__(self) -> str:
        return f"{self.weight.value}: {self.place}: {self.text} [{self.rule}]"


def error(rule: str, place: str, text: str) -> Finding:
    return Finding(Weight.ERROR, rule, _sayable(place), _sayable(text))


def warning(rule: str, place: str, text: str) -> Finding:
    return Finding(Weight.WARNING, rule, _sayable(place), _sayable(text))


def _sayable(text: str) -> str:
    """Return `text` with the bytes of a file name that is not UTF-8 as escapes."""
    return text.encode(errors="backslashreplace").decode()
