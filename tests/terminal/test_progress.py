"""Progress: a bar with a share on a terminal, and at most a line a minute elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pytest
from rich.console import Console

from gateway.terminal.progress import progress


def lines(
    steps: Sequence[tuple[float, str, float | None]], *, terminal: bool = False, named: bool = True
) -> str:
    """Show steps at the given seconds and return the output."""
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=terminal, color_system=None)
    times: Iterator[float] = iter([0.0, *(at for at, _, _ in steps)])
    with progress(console, clock=lambda: next(times), steps=named) as show_step:
        for _, step, share in steps:
            if share is None:
                show_step(step)
            else:
                show_step(step, share)
    return text.getvalue()


def test_every_step_has_a_line_with_its_time() -> None:
    assert lines([(0.25, "checking", None), (61.5, "joining [b]", None)]).splitlines() == [
        "  0.2 s  checking", " 61.5 s  joining [b]",
    ]  # fmt: skip


def test_a_share_has_a_line_a_minute_with_the_time_left() -> None:
    steps = [(second, "joining", second / 200) for second in range(0, 200, 5)]

    assert lines(steps).splitlines() == [
        "  0.0 s  joining (0%)",
        " 60.0 s  joining (30%, 2 min left)",
        "120.0 s  joining (60%, 80 s left)",
        "180.0 s  joining (90%, 20 s left)",
    ]


def test_a_quick_command_without_named_steps_prints_nothing() -> None:
    steps = [(second, "generating", second / 200) for second in range(0, 200, 5)]

    assert lines(steps[:11], named=False) == ""
    assert lines(steps, named=False).splitlines()[0] == " 60.0 s  generating (30%, 2 min left)"


def test_a_new_step_has_its_line_at_once() -> None:
    steps = [(0.0, "joining", 0.5), (1.0, "joining", 0.9), (2.0, "writing", 0.1)]

    assert lines(steps).splitlines() == ["  0.0 s  joining (50%)", "  2.0 s  writing (10%)"]


def test_the_time_left_follows_the_latest_job_of_a_step() -> None:
    """A step of Spark has several jobs, each with its own share."""
    steps = [(0.0, "joining", 0.0), (50.0, "joining", 1.0), (60.0, "joining", 0.0)]
    steps += [(120.0, "joining", 0.75)]

    assert lines(steps).splitlines()[-1] == "120.0 s  joining (75%, 20 s left)"


def test_a_terminal_has_a_bar_with_the_share_and_the_time_left() -> None:
    text = lines([(0.0, "joining", 0.25), (60.0, "joining", 0.75)], terminal=True)

    assert text.count("0.0 s  joining") == 1
    assert "━" in text
    assert "75%" in text
    assert "30 s left" in text


def test_a_dumb_terminal_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")

    assert lines([(0.0, "joining", 0.25)], terminal=True) == "  0.0 s  joining (25%)\n"
