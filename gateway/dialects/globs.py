"""Globs inside a level, converted between a system's spelling and the canonical form.

A star stands for raw text, so the text may begin or end within an escape token. The fixed part
beside such a star is shortened to the certain characters. The result therefore never selects
less than the original.
"""

from __future__ import annotations

from gateway.dialects.escape import Codec
from gateway.model.matching import glob_matches
from gateway.model.pattern import AnyOne, Glob


def convert_glob(
    glob: Glob, codec: Codec, *, first: bool, outward: bool
) -> tuple[Glob | AnyOne, bool]:
    """Convert a glob to the spelling of a system (`outward`), or from it to the canonical form.

    The second result says whether the converted glob selects the same.
    """
    parts = _certain_parts(glob.parts, codec)
    words = [
        codec.convert_part(part, first=first and at == 0, outward=outward)
        for at, part in enumerate(parts)
    ]
    made = Glob((words[0], *filter(None, words[1:-1]), words[-1]), glob.minimum)
    exact = parts == list(glob.parts)
    for there, here in codec.level_pairs:
        before, after = (there, here) if outward else (here, there)
        selected = glob_matches(glob, before)
        if selected != glob_matches(made, after):
            if selected:
                return AnyOne(), False
            exact = False
    if made == Glob(("", "")):
        return AnyOne(), exact
    return made, exact


def _certain_parts(parts: tuple[str, ...], codec: Codec) -> list[str]:
    last = len(parts) - 1
    certain: list[str] = []
    for at, part in enumerate(parts):
        text = part
        if at > 0 and (found := codec.token_end.match(text)):
            text = text[found.end() :]
        if at < last and (found := codec.token_start.search(text)):
            text = text[: found.start()]
        certain.append(text)
    if codec.level_pairs and certain[0].startswith("%"):
        certain[0] = ""  # it may be the token of a whole level
    return certain
