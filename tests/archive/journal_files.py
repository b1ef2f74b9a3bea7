"""The journals of an archive by their paths: one that a test writes, and those set aside."""

from __future__ import annotations

from pathlib import Path

from gateway.archive.layout import DAMAGED, OPEN, JournalName, journal_folder, listed, safe_name


def journal_path(root: Path, gateway: str, start: int, number: int) -> Path:
    """Return the path of journal `number` of the gateway started at `start` microseconds."""
    return journal_folder(root) / f"{JournalName(safe_name(gateway), start, number)}{OPEN}"


def damaged_journals(root: Path) -> list[Path]:
    return listed(journal_folder(root), DAMAGED)
