"""Output for people: safe text, tables and progress. Tables and progress load `rich`."""

from gateway.terminal.safe_text import (
    escaped,
    print_line,
    visible,
    visible_lines,
    visible_values,
)

__all__ = ["escaped", "print_line", "visible", "visible_lines", "visible_values"]
