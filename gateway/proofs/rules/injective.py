"""Proof: a target makes two different source names two different names; else both are shown."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.model.pattern import Literal, Pattern
from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Cut, Flow, Part, Var
from gateway.proofs.rules.ambiguity import divided_twice
from gateway.proofs.rules.collisions import colliding
from gateway.proofs.rules.loss import Loss, loss_of
from gateway.proofs.search.equations import Bound, holding, restricted, with_bound
from gateway.proofs.search.examples import exactly, example
from gateway.proofs.search.samples import dealt, trial_names
from gateway.proofs.search.witness import Sent, sent
from gateway.routing.route import Target
from gateway.translate.names import Escape

ATTEMPTS = 4  # names from which a second one is looked for
TRIALS = 1_500  # names that are tried where no equation answers
Names = tuple[tuple[str, ...], tuple[str, ...]]


def injective(flow: Flow) -> Finding | None:
    """Two names that become one, or that it cannot be ruled out; None is a proof.

    Raises:
        LimitError: the search became too long.
    """
    loss = loss_of(flow)
    search = _Search(flow, loss)
    if (pair := next(search.twins(), None)) is not None:
        return _finding(flow, loss, *pair)
    if not loss or search.exhausted:
        return None
    text = f"{_reason(flow, loss)}; no two names that become one were found, and none ruled out"
    return flow.site.finding("possible-loss", "warning", text, _hint(loss), target=flow.place)


def twins(flow: Flow) -> Iterator[Names]:
    """Pairs of names that become one."""
    search = _Search(flow, loss_of(flow))
    return ((pair[0].levels, pair[1].levels) for pair in search.twins())


def declared_lossy(target: Target) -> bool:
    """Whether the mapping says that names may become one."""
    return target.lossy


class _Search:
    """Names that may become one. Mutable: `exhausted` once it is sure that there are none."""

    def __init__(self, flow: Flow, loss: Loss) -> None:
        self._flow, self._loss = flow, loss
        self._pattern, self._excludes = flow.pattern, flow.site.excludes
        self.exhausted = False

    def twins(self) -> Iterator[tuple[Sent, Sent]]:
        """Different names that do become one."""
        for names in self._pairs():
            one, other = (sent(self._flow, levels) for levels in names)
            if one is not None and other is not None and one.made == other.made:
                yield one, other

    def _pairs(self) -> Iterator[Names]:
        yield from self._replaced()
        yield from self._unused()
        for level in self._loss.unclear:
            yield from self._unclear(level)
        for cut in self._loss.cuts:
            yield from self._cut(cut)
        if self._loss:
            yield from self._same_made()
            yield from self._by_trial()

    def _unused(self) -> Iterator[Names]:
        """Names that differ only in what the made name does not hold."""
        if not self._loss.unused:
            return
        tried: list[Pattern] = []
        for _ in range(ATTEMPTS):
            first = example([[self._pattern]], [*self._excludes, *tried])
            if first is None:
                self.exhausted = not self._loss.unclear and not self._loss.cuts
                return
            others = self._others(set(self._loss.unused))
            second = self._second(first, holding(self._pattern, first, others))
            if second is not None:
                yield first, second
            tried.append(exactly(first))

    def _unclear(self, level: tuple[Part, ...]) -> Iterator[Names]:
        found = divided_twice(level, self._pattern)
        if found is None:
            return
        one, other = (
            {
                part.at: (Literal(text),)
                for part, text in zip(level, texts, strict=True)
                if isinstance(part, Var)
            }
            for texts in found
        )
        yield from self._bound_pairs(one, other)

    def _cut(self, cut: Cut) -> Iterator[Names]:
        found = colliding(cut.functions, one=cut.one)
        if found is not None and cut.places:
            one, other = (dealt(cut.places, levels) for levels in found)
            yield from self._bound_pairs(one, other)

    def _replaced(self) -> Iterator[Names]:
        """Names that differ in a character which the target cannot spell."""
        renderer = self._flow.target.renderer
        if renderer.escape is not Escape.REPLACE:
            return
        spelled = renderer.dialect.codec.spelled
        lost = [char for char, here in spelled.items() if here.startswith("%")]
        for at, level in enumerate(self._pattern.levels):
            if not isinstance(level, Literal):
                for char in lost:
                    one, other = (
                        {at: (Literal(f"x{each}x"),)} for each in (char, renderer.replacement)
                    )
                    yield from self._bound_pairs(one, other)

    def _same_made(self) -> Iterator[Names]:
        """Names that a made name can come from."""
        first = example([[self._pattern]], self._excludes)
        found = sent(self._flow, first)
        if first is None or found is None:
            return
        for pattern in restricted(self._flow, exactly(found.arrived)):
            second = self._second(first, pattern)
            if second is not None:
                yield first, second

    def _by_trial(self) -> Iterator[Names]:
        """Names of small texts, when nothing better helps."""
        seen: dict[str, tuple[str, ...]] = {}
        for levels in trial_names(self._flow, TRIALS):
            found = sent(self._flow, levels)
            if found is not None and seen.setdefault(found.made, levels) != levels:
                yield seen[found.made], levels

    def _bound_pairs(self, one: Bound, other: Bound) -> Iterator[Names]:
        first = example([[with_bound(self._pattern, one)]], self._excludes)
        if first is None:
            return
        kept = holding(self._pattern, first, self._others(set(other)), other)
        second = self._second(first, kept)
        if second is not None:
            yield first, second

    def _second(self, first: tuple[str, ...], pattern: Pattern) -> tuple[str, ...] | None:
        return example([[pattern]], [*self._excludes, exactly(first)])

    def _others(self, places: set[int]) -> set[int]:
        levels = enumerate(self._pattern.levels)
        return {at for at, level in levels if at not in places and not isinstance(level, Literal)}


def _finding(flow: Flow, loss: Loss, one: Sent, other: Sent) -> Finding:
    text = (
        f"{one.name!r} and {other.name!r} both become {one.made!r} "
        f"at {flow.target.endpoint!r}: {_reason(flow, loss)}"
    )
    lossy = declared_lossy(flow.target)
    return flow.site.finding(
        "not-injective",
        "note" if lossy else "error",
        text,
        "the target is declared lossy" if lossy else _hint(loss),
        (one.name, other.name),
        target=flow.place,
    )


def _reason(flow: Flow, loss: Loss) -> str:
    words = flow.words
    if loss.unused:
        names = " and ".join(dict.fromkeys(words[at] for at in loss.unused))
        return f"the template leaves out {names}"
    if loss.unclear:
        return f"nothing tells where each part of {_level(flow, loss.unclear[0])!r} ends"
    if loss.cuts:
        calls = "|".join(function.name for function in loss.cuts[0].functions)
        return f"{calls!r} makes different texts one"
    renderer = flow.target.renderer
    return f"'escape: replace' writes {renderer.replacement!r} for what {flow.target.system} lacks"


def _level(flow: Flow, level: tuple[Part, ...]) -> str:
    words = flow.words
    texts: list[str] = []
    for part in level:
        places = (
            (part.at,) if isinstance(part, Var) else () if isinstance(part, str) else part.places
        )
        texts.append(part if isinstance(part, str) else "".join(words[at] for at in places))
    return "".join(texts)


def _hint(loss: Loss) -> str:
    declare = "or write 'lossy: true' at the target"
    if loss.unused:
        return f"use every capture in the template, {declare}"
    if loss.unclear:
        return f"give each capture a level of its own, {declare}"
    if loss.cuts:
        return f"leave the function out, {declare}"
    return f"use 'escape: escape' or 'escape: reject', {declare}"
