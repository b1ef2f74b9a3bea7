"""Progress: a bar with a share on a terminal, and at most a line a minute elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.console import Console

from gateway.reconcile.progress import progress


def lines(steps: Sequence[tuple[float, str, float | None]], *, terminal: bool = False) -> str:
    """Show steps at the given seconds and return the output."""
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=terminal, color_system=None)
    times: Iterator[float] = iter([0.0, *(at for at, _, _ in steps)])
    with progress(console, clock=lambda: next(times)) as show_step:
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


def test_a_share_has_a_line_a_minute() -> None:
    steps = [(second, "joining", second / 200) for second in range(0, 200, 5)]

    assert lines(steps).splitlines() == [
        "  0.0 s  joining (0%)", " 60.0 s  joining (30%)", "120.0 s  joining (60%)",
        "180.0 s  joining (90%)",
    ]  # fmt: skip


def test_a_new_step_has_its_line_at_once() -> None:
    steps = [(0.0, "joining", 0.5), (1.0, "joining", 0.9), (2.0, "writing", 0.1)]

    assert lines(steps).splitlines() == ["  0.0 s  joining (50%)", "  2.0 s  writing (10%)"]


def test_a_terminal_has_a_bar_with_the_share() -> None:
    text = lines([(0.0, "joining", 0.25), (1.0, "joining", 0.75)], terminal=True)

    assert text.count("0.0 s  joining") == 1
    assert "━" in text
    assert "75%" in text
