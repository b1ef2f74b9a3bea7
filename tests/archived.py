"""The rows of an archive whose gateway has stopped, however little time its stop had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gateway.archive.layout import days, journals
from gateway.archive.lookup.reader import Row, read_rows


def convert_journals(root: Path) -> None:
    """Convert the journals that a killed or slow gateway left.

    Raises:
        AssertionError: a journal cannot be converted.
    """
    if left := journals(root):
        command = [sys.executable, "-m", "gateway.archive.segments", *map(str, (root, *left))]
        subprocess.run(command, check=True, timeout=300)  # noqa: S603  # our own
    assert not journals(root)


def archived(folder: Path) -> list[Row]:
    """Return the rows of all days in the archive of the gateway in `folder`."""
    root = folder / "archive"
    convert_journals(root)
    return [row for day in days(root) for row in read_rows(root, day)]
