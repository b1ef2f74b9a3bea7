"""Durable changes to a local folder: files replaced in one step, and synced names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces `path` at the end of the block, durably and in one step.

    A reader sees the old content or the new. An error inside the block leaves the old content and
    a hidden file, which the next replacement overwrites.

    Raises:
        OSError: the folder cannot be written.
    """
    hidden = path.with_name(f".tmp-{path.name}")
    with hidden.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    sync_folder(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Replace the content of `path` with `text` as UTF-8, durably and in one step."""
    with replacing(path) as file:
        file.write(text.encode())


def sync_folder(path: Path) -> None:
    """Make the names in `path` durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
