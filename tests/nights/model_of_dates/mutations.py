"""Rules of the verification and of the nights that are broken on purpose: worlds find each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from gateway.archive import judged_journals
from gateway.archive.journal import local_head
from gateway.night.archive import acknowledged
from gateway.night.archive.segments import convert
from gateway.night.archive.verification import chains, writers
from gateway.night.reconcile.nights import world as night_world
from tests.nights.model_of_dates.campaign import judged_world

_NOTHING: Final = lambda *_: iter(())  # noqa: E731  # no finding

MUTATIONS: Final = {
    "the end of a chain is not looked at": (chains._Chain, "_end", _NOTHING),  # noqa: SLF001
    "a second chain is not compared": (chains._Chain, "_break", _NOTHING),  # noqa: SLF001
    "a head is not told how its journal ended": (convert, "note_end", lambda *_, **__: None),
    "a journal before the first judged one is old": (
        judged_journals.Seen, "has", lambda self, number: number <= self.number,
    ),
    "a start says nothing about the date before": (
        night_world, "_proven_from", lambda seal, *_: seal.opened,
    ),
    "an acknowledgement ends no error": (acknowledged, "_shown", lambda _, finding, __: finding),
    "a lost journal ends with no lease": (writers.Facts, "followed", lambda *_: writers.FOREVER),
    "a new machine does not take the head of the lost one": (
        local_head, "_copied_head", lambda *_: None,
    ),
}  # fmt: skip


def seeds_until_found(name: str, seeds: range) -> int | None:
    """Return how many worlds are judged until one contradicts the truth; None when none does."""
    with _broken(name):
        found = (number for number, seed in enumerate(seeds, 1) if _is_bad(seed))
        return next(found, None)


def _is_bad(seed: int) -> bool:
    return bool(judged_world(seed)[0].contradictions)


@contextmanager
def _broken(name: str) -> Iterator[None]:
    owner, attribute, replacement = MUTATIONS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, attribute, replacement)
        yield
