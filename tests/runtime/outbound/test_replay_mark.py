"""The mark by which a command that sends beside a gateway says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import SpoolError
from gateway.runtime.archive_setup import replay_mark
from gateway.runtime.outbound.replay_mark import ReplayMark
from tests.waiting import PATIENCE


def test_the_count_is_odd_while_a_command_sends(tmp_path: Path) -> None:
    gateway, command = ReplayMark(tmp_path / "replays"), ReplayMark(tmp_path / "replays")
    counts = [gateway.count]
    for step in (command.begin, command.end, command.begin, command.end):
        step()
        counts.append(gateway.count)

    assert counts == [0, 1, 2, 3, 4]


KILLED = """
import os, signal, sys
from pathlib import Path
from gateway.runtime.outbound.replay_mark import ReplayMark
ReplayMark(Path(sys.argv[1])).begin()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_command_that_was_killed_has_sent_and_sends_no_more(tmp_path: Path) -> None:
    path = tmp_path / "replays"
    command = [sys.executable, "-c", KILLED, str(path)]
    subprocess.run(command, timeout=PATIENCE, check=False)  # noqa: S603  # our own text

    assert path.stat().st_size == 1
    assert [ReplayMark(path).count for _ in range(2)] == [2, 2]


def test_a_gateway_that_may_not_write_takes_a_killed_command_for_one_that_sends(
    tmp_path: Path,
) -> None:
    path = tmp_path / "replays"
    path.write_bytes(b".")
    path.chmod(0o444)
    mark = ReplayMark(path)

    assert mark.count == (2 if os.geteuid() == 0 else 1)  # root may write


def test_a_mark_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    mark = ReplayMark(tmp_path / "absent" / "replays")

    assert mark.count == 0
    with pytest.raises(SpoolError, match="replays: cannot be written: No such file"):
        mark.begin()


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ("spool: {path: spool}\narchive: {path: archive}\n", "spool/replays"),
        ("archive: {path: archive}\n", "archive/.journal/plant.replays"),
        ("", None),
    ],
    ids=["spool", "archive", "neither"],
)
def test_it_is_beside_what_a_command_reads(
    tmp_path: Path, sections: str, place: str | None
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "gateway: {name: plant}\nendpoints: {a: {kind: memory}, b: {kind: memory, broker: b}}\n"
        f"routes: {{r: {{from: {{endpoint: a, pattern: x}}, to: {{endpoint: b}}}}}}\n{sections}"
    )

    assert replay_mark(load(file)).path == (place and tmp_path / place)
