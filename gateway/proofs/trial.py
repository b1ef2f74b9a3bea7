"""Names of a flow made of small texts, where no equation answers; a miss proves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import TypeAlias

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal
from gateway.proofs.forms import Flow, cuts_of
from gateway.proofs.witness import sent

MOST = 400
Names: TypeAlias = tuple[str, ...]
PLAIN = ("x", "y", "X", "xx", "")


def trial_names(flow: Flow, most: int = MOST) -> Iterator[tuple[str, ...]]:
    """Names that the pattern takes, the plain ones first; excluded ones too."""
    texts = _texts(flow)
    groups = (_group(level, texts) for level in flow.pattern.levels)
    names = (sum(each, ()) for each in islice(product(*groups), most))
    return (name for name in names if name)


class Trials:
    """What trial names become, by flow. Mutable: a flow is tried once and remembered."""

    def __init__(self) -> None:
        self._known: dict[Flow, dict[Names, list[Names]]] = {}

    def of(self, flow: Flow) -> Mapping[Names, Sequence[Names]]:
        """The names by what they become."""
        if flow not in self._known:
            found: dict[Names, list[Names]] = {}
            for levels in trial_names(flow):
                if (made := sent(flow, levels)) is not None:
                    found.setdefault(made.arrived, []).append(levels)
            self._known[flow] = found
        return self._known[flow]


def _texts(flow: Flow) -> Sequence[str]:
    """Small texts, and such that hold what functions and templates look for."""
    words = [word for cut in cuts_of(flow) for call in cut.functions for word in call.arguments]
    words += [
        part
        for level in flow.made
        if isinstance(level, tuple) and len(level) > 1
        for part in level
        if isinstance(part, str)
    ]
    starts = [
        level.parts[0] * times
        for level in flow.pattern.levels
        if isinstance(level, Glob) and level.parts[0]
        for times in (1, 2)
    ]
    special = [text for word in words if word for text in (f"x{word}x", f"x{word}y", f"{word}x")]
    fixed = [level.text for level in flow.pattern.levels if isinstance(level, Literal)]
    return tuple(dict.fromkeys((*PLAIN, *starts, *special, *fixed)))


def _group(level: Level, texts: Sequence[str]) -> list[tuple[str, ...]]:
    match level:
        case Literal(text):
            return [(text,)]
        case AnyOne():
            return [(text,) for text in texts]
        case Glob():
            first, *others = level.parts
            return [(first + text + "".join(others),) for text in texts]
        case AnyMany(minimum):
            none: list[tuple[str, ...]] = [] if minimum else [()]
            ones = [(text,) for text in texts]
            return [*ones[:2], ("x", "y"), *none, *ones[2:], ("x", "x"), ("y", "x")]
