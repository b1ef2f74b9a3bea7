"""Output for people: safe text, tables and progress. Tables and progress load `rich`."""

from gateway.terminal.safe_text import (
    MAX_TEXT,
    escaped,
    print_line,
    rest,
    shortened,
    visible,
    visible_lines,
    visible_values,
)

__all__ = [
    "MAX_TEXT",
    "escaped",
    "print_line",
    "rest",
    "shortened",
    "visible",
    "visible_lines",
    "visible_values",
]
