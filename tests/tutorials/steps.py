"""The steps of a tutorial, as its page prints them: files to save, commands to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ANY = "…"  # any text within a line; alone in a line, any lines

_SAVE = re.compile(
    r"Save [^`\n]*`(?P<name>[^`]+)`[^`]*:\n\n```\w+\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)
_SESSION = re.compile(r"^```console\n(?P<session>.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command and the output below it, with `ANY` in the place of text that varies."""

    text: str
    output: str


def steps_of(page: str) -> Iterator[SavedFile | TypedCommand]:
    """Yield the steps of a page in their order."""
    found = sorted((*_SAVE.finditer(page), *_SESSION.finditer(page)), key=re.Match.start)
    for each in found:
        if each.re is _SAVE:
            yield SavedFile(each["name"], each["text"])
            continue
        for typed in re.split(r"^\$ ", each["session"], flags=re.MULTILINE)[1:]:
            text, _, output = typed.partition("\n")
            yield TypedCommand(text, output)


def is_as_printed(output: str, printed: str) -> bool:
    """Return whether an output is the printed one; blanks at the end of lines do not count."""
    lines = [re.escape(each.rstrip()) for each in printed.strip("\n").splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if each == ANY else each.replace(ANY, ".*") + r"\n" for each in lines
    )
    shown = "".join(f"{each.rstrip()}\n" for each in output.strip("\n").splitlines())
    return re.fullmatch(pattern, shown) is not None
