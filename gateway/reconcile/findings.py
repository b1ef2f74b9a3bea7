"""What the night's report says beside its numbers: a rule, a place, a text, and its weight."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Weight(Enum):
    """What a finding does to the verdict."""

    ERROR = "error"  # the numbers may be wrong: the night is not clean
    WARNING = "warning"  # worth knowing; the numbers stand


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with the archive; `rule` is the short name scripts decide by."""

    weight: Weight
    rule: str
    place: str  # a file or folder, relative to the archive
    text: str

    def __str__(self) -> str:
        return f"{self.weight.value}: {self.place}: {self.text} [{self.rule}]"


def error(rule: str, place: str, text: str) -> Finding:
    return Finding(Weight.ERROR, rule, place, text)


def warning(rule: str, place: str, text: str) -> Finding:
    return Finding(Weight.WARNING, rule, place, text)
