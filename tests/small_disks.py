"""A small file system of its own, so that a full or read-only disk is a real one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system in memory below `folder`; skip the test where that is not allowed."""
    with _mount(folder, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs") as mount:
        yield mount


@contextmanager
def mounted_ext4(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file as an ext4, as `mounted` does; `make_read_only` works with this one."""
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    _run_or_skip("mkfs.ext4", "-q", str(image))
    with _mount(folder, "-o", "loop", str(image)) as mount:
        yield mount


def make_read_only(mount: Path) -> None:
    """Make an ext4 read-only under its open files for good, as an error of the disk does."""
    _run("mount", "-o", "remount,abort", str(mount))


@contextmanager
def _mount(folder: Path, *what: str) -> Iterator[Path]:
    mount = folder / "disk"
    mount.mkdir()
    _run_or_skip("mount", *what, str(mount))
    try:
        yield mount
    finally:
        _run("umount", "-l", str(mount)).check_returncode()


def _run_or_skip(*command: str) -> None:
    try:
        done = _run(*command)
    except FileNotFoundError:
        pytest.skip(f"no small disk can be mounted here: there is no command {command[0]}")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # a tool of the system
