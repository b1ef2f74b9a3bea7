"""Tables: names are complete at every width, and a file has every column on one line."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gateway.terminal.console import print_lines, unlimited_off_terminal
from gateway.terminal.table import Column, Table

NAME = "plant-events-of-line-12-in-hamburg-north"  # 40 characters
COLUMNS = (
    Column("route", key=True),
    Column("received", right=True, always=True),
    Column("delivered late", right=True),
    Column("reason", note=True),
)


def table(*rows: tuple[str, ...]) -> Table:
    made = Table(*COLUMNS, more="more routes")
    for row in rows:
        made.add_row(*row)
    return made


def shown(made: Table, width: int | None, **limits: int) -> list[str]:
    """Print on a terminal of this width, or into a file when it is None."""
    text = io.StringIO()
    terminal = width is not None
    console = Console(file=text, width=width or 80, force_terminal=terminal, color_system=None)
    unlimited_off_terminal(console)
    print_lines(made.lines(console, **limits), console)
    return text.getvalue().splitlines()


def test_a_row_that_fits_is_one_line() -> None:
    assert shown(table(("a", "1", "2", "gone"), ("bb", "1,000", "0", "")), 80) == [
        "route  received  delivered late  reason",
        "a             1               2  gone",
        "bb        1,000               0",
    ]


def test_columns_without_content_are_left_out() -> None:
    assert shown(table(("a", "0", "0", "")), 80) == ["route  received", "a             0"]


def test_heads_split_at_words_before_anything_moves() -> None:
    assert shown(table(("a", "1", "2", "gone")), 34) == [
        "                 delivered",
        "route  received       late  reason",
        "a             1          2  gone",
    ]


def test_a_note_moves_below_its_row_and_wraps_at_words() -> None:
    assert shown(table(("a", "1", "2", "the broker refused the password")), 32) == [
        "route  received  delivered late",
        "a             1               2",
        "    reason the broker refused",
        "    the password",
    ]


def test_a_long_name_has_a_line_of_its_own_above_its_figures() -> None:
    assert shown(table((NAME, "1", "2", ""), ("a", "1,000", "3", "")), 60) == [
        "route",
        "    received  delivered late",
        NAME,
        "           1               2",
        "a",
        "       1,000               3",
    ]


def test_figures_that_do_not_fit_stand_behind_their_heads() -> None:
    assert shown(table(("a" * 12, "1", "2", "gone"), ("b", "3", "0", "")), 18) == [
        "aaaaaaaaaaaa",
        "    received 1",
        "    delivered late 2",
        "    reason gone",
        "b",
        "    received 3",
    ]


def test_a_file_has_no_limit_of_width() -> None:
    lines = shown(table((NAME * 9, "1", "2", "the broker refused " * 30)), None)

    assert len(lines) == 2
    assert lines[1].split()[:3] == [NAME * 9, "1", "2"]


def test_two_names_that_do_not_fit_have_a_line_each() -> None:
    made = Table(Column("route", key=True), Column("target", key=True), joint=" -> ")
    made.add_row(NAME, NAME)

    assert shown(made, 60)[-2:] == [NAME, f"  -> {NAME}"]


@pytest.mark.parametrize(
    ("limits", "hidden"),
    [({"max_rows": 3}, 7), ({"max_lines": 5}, 7), ({"max_lines": 11}, 0), ({"max_lines": 10}, 2)],
)
def test_a_line_counts_the_rows_beyond_a_limit(limits: dict[str, int], hidden: int) -> None:
    lines = shown(table(*((f"r{n}", "1", "0", "") for n in range(10))), 80, **limits)

    assert len(lines) <= limits.get("max_lines", 5)
    counted = [line for line in lines if line.startswith("...")]
    assert counted == ([f"... and {hidden} more routes"] if hidden else [])
    assert len(lines) == 1 + 10 - hidden + len(counted)


def test_a_name_that_is_zero_is_shown() -> None:
    assert shown(table(("0", "1", "0", "")), None) == ["route  received", "0             1"]


def test_wide_characters_take_two_columns() -> None:
    assert shown(table(("工場", "1", "0", ""), ("a", "2", "0", "")), 80) == [
        "route  received", "工場          1", "a             2",
    ]  # fmt: skip


@given(
    rows=st.lists(
        st.tuples(*[st.text(st.characters(min_codepoint=33, max_codepoint=126))] * 4), min_size=1
    ),
    width=st.integers(min_value=20, max_value=120),
)
def test_every_text_is_shown_and_nothing_is_wider_than_the_terminal(
    rows: list[tuple[str, str, str, str]], width: int
) -> None:
    lines = shown(table(*rows), width)
    compact = "".join("".join(lines).split())

    for name, *figures, note in rows:
        assert name in compact
        for cell in figures:
            assert cell in compact or cell == "0"
        assert note in compact or note == "0"
    widest = max(len(cell) for row in rows for cell in row)
    assert all(len(line) <= width for line in lines) or widest > width - len("    delivered late ")
