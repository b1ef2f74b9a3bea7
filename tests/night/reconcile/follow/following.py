"""Runs of `--follow --once` over an archive, and the tables that they leave."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq

from gateway.archive.layout import HOUR, followed_folder
from gateway.cli import make_parser
from gateway.night.cli import reconcile as command
from gateway.night.reconcile.follow.day import FollowOptions
from gateway.night.reconcile.follow.follow import Follower, follow
from tests.archive.samples import DAY, NOON
from tests.night.reconcile.night import LATE, Copy

CLOCK = NOON + 36 * HOUR
COUNTED = ("received", "delivered", "missing", "altered", "duplicated", "lost in target")
SECOND = 1_000_000


class Crash(Exception):  # noqa: N818  # it is the event, not an error of the program
    """Stands for the end of the process: no code catches it."""


def silent(_: str, __: float | None = None) -> None:
    return None


def stops_at(wanted: str) -> Callable[[str], None]:
    def show_step(step: str) -> None:
        if wanted in step:
            raise Crash(step)

    return show_step


def once(root: Path, show_step: Callable[..., None] = silent) -> tuple[Follower, list[str]]:
    """One run over the existing files; the follower and its printed lines."""
    lines: list[str] = []
    options = FollowOptions(root, followed_folder(root), "local[1]", LATE, once=True)
    follower = Follower(options, show_step, lines.append, lambda: CLOCK)
    follow(follower, Event())
    return follower, lines


def appended(root: Path, table: str, day: date = DAY) -> list[dict[str, object]]:
    """Every row of a table, in the order of the batches."""
    folder = followed_folder(root) / table / f"date={day}"
    found = [
        {"batch": int(part.name.removeprefix("batch=")), **row}
        for part in folder.glob("batch=*")
        for row in pq.read_table(part, partitioning=None).to_pylist()
    ]
    assert all(name.isidentifier() for row in found for name in row)  # a query quotes none
    return sorted(found, key=lambda row: int(str(row["batch"])))


def classes(root: Path, day: date = DAY) -> dict[Copy, str]:
    """The newest class of every copy that is an exception."""
    newest = {
        (str(row["gateway"]), str(row["route"]), str(row["target"]), str(row["id"])): row["class"]
        for row in appended(root, "exceptions", day)
    }
    return {copy: str(name) for copy, name in newest.items() if name != "withdrawn"}


def newest_minutes(root: Path) -> list[dict[str, object]]:
    """The newest counts of every target and minute."""
    keys = ("gateway", "route", "target", "minute")
    return list(
        {tuple(row[key] for key in keys): row for row in appended(root, "minutes")}.values()
    )


def counts(root: Path) -> dict[str, int]:
    return {
        name: sum(int(str(row[name.replace(" ", "_")])) for row in newest_minutes(root))
        for name in COUNTED
    }


def parsed(root: Path, *options: str) -> argparse.Namespace:
    return make_parser("reconcile").parse_args(["reconcile", str(root), *options])


def run(root: Path) -> tuple[int, dict[str, Any]]:
    """Run the command with `--once`; return its exit status and its summary."""
    summary_file = root.with_name("summary.json")
    status = command.run(
        parsed(root, "--follow", "--once", "--late", str(LATE), "--json", str(summary_file))
    )
    return status, json.loads(summary_file.read_text())
