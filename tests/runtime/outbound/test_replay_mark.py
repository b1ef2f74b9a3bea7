"""The mark by which a command that sends beside a gateway says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import SpoolError
from gateway.runtime.archive_setup import replay_mark
from gateway.runtime.outbound.replay_mark import ReplayMark


def test_the_count_is_odd_while_a_command_sends_also_after_one_that_was_killed(
    tmp_path: Path,
) -> None:
    mark = ReplayMark(tmp_path / "replays")
    counts = [mark.count]
    for step in (mark.begin, mark.end, mark.begin, mark.begin, mark.end):
        step()
        counts.append(mark.count)

    assert counts == [0, 1, 2, 3, 5, 6]


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
