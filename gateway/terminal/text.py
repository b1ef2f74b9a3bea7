"""Foreign text made safe for a terminal: names, payloads and errors without control characters."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Final, TextIO

from gateway.untyped import Untyped

MAX_TEXT: Final = 300  # characters of a foreign text that are shown


def visible(text: str) -> str:
    """Return `text` on one line, with an escape for each character that is not printable.

    Control characters, line ends, lone surrogates and marks that reverse the writing direction are
    escaped.
    """
    return text if text.isprintable() else "".join(map(escaped, text))


def escaped(character: str) -> str:
    """Return the character, as an escape if it is not printable."""
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """Return `text` made visible and cut to `limit` characters."""
    shown = visible(text[:limit])
    return shown if len(text) <= limit else shown + rest(text)


def rest(text: str) -> str:
    """Return the end of a text that was cut: its number of characters."""
    return f"… ({len(text):,} characters)"


def visible_lines(text: str, indent: str = "") -> str:
    """Return each line of `text` made visible, after `indent`."""
    return "\n".join(indent + visible(line) for line in text.split("\n"))


def visible_values(value: Untyped) -> Untyped:
    """Return a JSON value with each text in it made visible, the keys of objects included."""
    match value:
        case str():
            return visible(value)
        case dict():
            return {visible_values(key): visible_values(each) for key, each in value.items()}
        case list():
            return [visible_values(each) for each in value]
        case _:
            return value


def print_words(text: str) -> None:
    """Print `text`, made visible; a terminal breaks it between words only, and indents the rest."""
    lines = [visible(text)]
    if sys.stdout is not None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        lines = textwrap.wrap(
            lines[0],
            width,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    print("\n".join(lines))


def print_line(text: str, file: TextIO | None = None) -> None:
    """Print `text`, made visible, on one line of `file` (standard output)."""
    print(visible(text), file=file)
