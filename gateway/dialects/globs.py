"""Stars inside a level, carried over an escape alphabet.

A star stands for raw text, so it may begin or end within a token. There the fixed part beside it
is cut to what is sure: the result never selects less, and says whether it selects the same.
"""

from __future__ import annotations

from gateway.dialects.escape import Codec
from gateway.model.matching import glob_matches
from gateway.model.pattern import AnyOne, Glob


def unescape_glob(glob: Glob, codec: Codec, *, first: bool) -> tuple[Glob | AnyOne, bool]:
    """A glob of a system for the levels of the middle, and whether it selects the same."""
    return _carried(glob, codec, first=first, outward=False)


def escape_glob(glob: Glob, codec: Codec, *, first: bool) -> tuple[Glob | AnyOne, bool]:
    """A glob of the middle for a system's own levels, and whether it selects the same."""
    return _carried(glob, codec, first=first, outward=True)


def _carried(glob: Glob, codec: Codec, *, first: bool, outward: bool) -> tuple[Glob | AnyOne, bool]:
    parts = _sure_parts(glob.parts, codec)
    step = codec.encode_part if outward else codec.decode_part
    words = [step(part, first=first and at == 0) for at, part in enumerate(parts)]
    made = Glob((words[0], *filter(None, words[1:-1]), words[-1]), glob.minimum)
    exact = parts == list(glob.parts)
    for there, here in codec.whole_pairs:
        before, after = (there, here) if outward else (here, there)
        selected = glob_matches(glob, before)
        if selected != glob_matches(made, after):
            if selected:
                return AnyOne(), False
            exact = False
    if made == Glob(("", "")):
        return AnyOne(), exact
    return made, exact


def _sure_parts(parts: tuple[str, ...], codec: Codec) -> list[str]:
    last = len(parts) - 1
    sure: list[str] = []
    for at, part in enumerate(parts):
        text = part
        if at > 0 and (found := codec.token_end.match(text)):
            text = text[found.end() :]
        if at < last and (found := codec.token_start.search(text)):
            text = text[: found.start()]
        sure.append(text)
    if codec.whole_pairs and sure[0].startswith("%"):
        sure[0] = ""  # it may be the token of a whole level
    return sure
