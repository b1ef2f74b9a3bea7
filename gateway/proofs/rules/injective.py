"""Proof: a target translates distinct source names to distinct names.

The loss of a template are the variables that the target name does not determine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.parts import BOUNDARY
from gateway.model.pattern import AnyMany, Glob, Literal, Pattern
from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.flow import (
    THE_KEY,
    Flow,
    LevelVariable,
    LossyCall,
    Part,
    RestVariable,
    levels_by_position,
)
from gateway.proofs.rules.ambiguity import ambiguous_texts
from gateway.proofs.search.collisions import find_collision
from gateway.proofs.search.equations import Bindings, bind, bind_to_name, source_patterns
from gateway.proofs.search.examples import exact_pattern, examples, find_example, names_of
from gateway.proofs.search.samples import bind_levels, trial_names
from gateway.proofs.search.translated_name import TranslatedName, translate_by_flow
from gateway.translate.names import OnUnmappable


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a template, by cause.

    `unused` are the positions of variables that stand nowhere in the target name, `ambiguous` its
    levels whose parts have no certain boundaries, `calls` the calls of functions that are not
    injective, `rests` the rest wildcards between which no level is a certain boundary.
    """

    unused: tuple[int, ...] = ()
    ambiguous: tuple[tuple[Part, ...], ...] = ()
    calls: tuple[LossyCall, ...] = ()
    rests: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unused or self.ambiguous or self.calls or self.rests)


def loss_of(flow: Flow) -> Loss:
    """Return the loss of a flow; no loss is a proof that distinct names stay distinct."""
    wild = {at for at, level in enumerate(flow.pattern.levels) if not isinstance(level, Literal)}
    if flow.keeps_name or (known := _determined(flow)) >= wild:
        return Loss()
    calls = tuple(call for call in flow.lossy_calls if not known.issuperset(call.positions))
    ambiguous = tuple(level for level in _levels(flow) if len(_unknown(level, known)) > 1)
    return Loss(tuple(sorted(wild - _shown(flow))), ambiguous, calls, _unbounded(flow))


def _levels(flow: Flow) -> list[tuple[Part, ...]]:
    return [level for level in flow.target_levels if isinstance(level, tuple)]


def _shown(flow: Flow) -> set[int]:
    """Return the variables that the target name holds, whole or in part."""
    in_calls = {at for call in flow.lossy_calls for at in call.positions}
    return in_calls.union(flow.shown_variables)


def _determined(flow: Flow) -> set[int]:
    """Return the variables that the target name determines for every value.

    Levels have certain positions when at most one rest wildcard between two certain boundaries has
    an unknown length. A level then determines its variable; a level with several determines them
    when no text divides in two ways.
    """
    known = {level.position for level in flow.target_levels if isinstance(level, RestVariable)}
    if _unbounded(flow) or any(isinstance(level, LossyCall) for level in flow.target_levels):
        return set()
    grown = True
    while grown:
        before = len(known)
        for level in _levels(flow):
            unknown = _unknown(level, known)
            if len(unknown) == 1 or (unknown and ambiguous_texts(level, flow.pattern) is None):
                known |= {part.position for part in unknown if isinstance(part, LevelVariable)}
        grown = len(known) > before
    return known


def _unbounded(flow: Flow) -> tuple[int, ...]:
    """Return rest wildcards that stand in the target name without a certain boundary between them.

    A fixed level that no wildcard of the source matches is such a boundary.
    """
    boundaries = [(text,) for text in flow.pattern.exclusions.whole_levels]
    rests: dict[int, None] = {}
    for level in flow.target_levels:
        if isinstance(level, RestVariable):
            rests[level.position] = None
        if level in boundaries:
            rests.clear()
        if len(rests) > 1:
            return tuple(rests)
    return ()


def _unknown(level: Sequence[Part], known: set[int]) -> list[Part]:
    parts = [part for part in level if not isinstance(part, str)]
    return list(dict.fromkeys(part for part in parts if not known.issuperset(part.positions)))


MAX_ATTEMPTS = 4  # names for which a second one is searched
MAX_TRIALS = 1_500  # names that are tried where equations are not solved
NamePair = tuple[tuple[str, ...], tuple[str, ...]]


def prove_injective(flow: Flow) -> RouteFinding | None:
    """Return a finding when two names become one, or when that is not ruled out; None is a proof.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    if flow.has_fields:
        reason = f"the message brings {flow.shown_fields}, so names of any two messages may be one"
        hint = "nothing to do: such a template is declared lossy by its field"
        return flow.finding("not-injective", "note", reason, hint)
    loss = loss_of(flow)
    search = _Search(flow, loss)
    if (pair := next(search.colliding(), None)) is not None:
        return _finding(flow, loss, *pair)
    if not loss or search.exhausted:
        return None
    reason, hint = _reason(flow, loss)
    text = f"{reason}; names may become one, and no example was found"
    return flow.finding("possible-loss", "warning", text, hint)


def colliding_names(flow: Flow) -> Iterator[NamePair]:
    """Yield pairs of names that become one.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    search = _Search(flow, loss_of(flow))
    return ((pair[0].source_levels, pair[1].source_levels) for pair in search.colliding())


class _Search:
    """The search for two names that become one.

    Mutable: `exhausted` is set when the search has proved that there are none.
    """

    def __init__(self, flow: Flow, loss: Loss) -> None:
        self._flow, self._loss = flow, loss
        self._pattern, self._excludes = flow.pattern, flow.source.excludes
        self.exhausted = False

    def colliding(self) -> Iterator[tuple[TranslatedName, TranslatedName]]:
        """Yield distinct names that become one."""
        for names in self._pairs():
            one, other = (translate_by_flow(self._flow, levels) for levels in names)
            if one is not None and other is not None and one.target_name == other.target_name:
                yield one, other

    def _pairs(self) -> Iterator[NamePair]:
        yield from self._replaced()
        yield from self._unused()
        for level in self._loss.ambiguous:
            yield from self._ambiguous(level)
        for call in self._loss.calls:
            yield from self._colliding_captures(call)
        if self._loss.rests:
            yield from self._between_rests(*self._loss.rests[:2])
        if self._loss:
            if first := find_example([[self._pattern]], self._excludes):
                yield from self._same_made(first)
            yield from self._by_trial()

    def _unused(self) -> Iterator[NamePair]:
        """Yield names that differ only in unused variables."""
        if not self._loss.unused:
            return
        others = self._others(self._loss.unused)
        tried = 0
        for first in examples([[self._pattern]], self._excludes, MAX_ATTEMPTS):
            tried += 1
            yield from self._pair(first, bind_to_name(self._pattern, first, others))
        if tried < MAX_ATTEMPTS:
            self.exhausted = not (self._loss.ambiguous or self._loss.calls or self._loss.rests)

    def _ambiguous(self, level: tuple[Part, ...]) -> Iterator[NamePair]:
        found = ambiguous_texts(level, self._pattern)
        if found is None:
            return
        one, other = (
            {
                part.position: (Literal(text),)
                for part, text in zip(level, texts, strict=True)
                if isinstance(part, LevelVariable)
            }
            for texts in found
        )
        yield from self._bound_pairs(one, other)

    def _colliding_captures(self, call: LossyCall) -> Iterator[NamePair]:
        found = find_collision(call.functions, single_level=call.single_level)
        if found is not None and call.positions:
            one, other = (bind_levels(call.positions, levels) for levels in found)
            yield from self._bound_pairs(one, other)

    def _replaced(self) -> Iterator[NamePair]:
        """Yield names that differ in a character that the target replaces."""
        renderer = self._flow.target.renderer
        if renderer.on_unmappable is not OnUnmappable.REPLACE:
            return
        lost = renderer.dialect.codec.escaped_characters
        for at, level in enumerate(self._pattern.levels):
            if isinstance(level, Literal):
                continue
            start, *others = level.parts if isinstance(level, Glob) else ("", "")
            end = "".join(others)
            around = (AnyMany(0),) if isinstance(level, AnyMany) else ()
            for char in lost:  # a plain example first, then any that no exclude takes
                for inner in (Literal(f"{start}x{char}x{end}"), Glob((start, char, end))):
                    bound = bind(self._pattern, {at: (*around, inner, *around)})
                    for first in names_of(self._flow, [bound]):
                        groups = levels_by_position(bound, first)
                        before = sum(map(len, groups[: at + len(around)]))
                        text = first[before].removeprefix(start).removesuffix(end)
                        made = start + text.replace(char, renderer.replacement) + end
                        yield first, (*first[:before], made, *first[before + 1 :])

    def _between_rests(self, one: int, other: int) -> Iterator[NamePair]:
        """Yield names of which a rest wildcard has the levels that stand behind it as well."""
        levels = self._flow.target_levels
        start, stop = (levels.index(RestVariable(at)) for at in (one, other))
        fixed = [each[0] for each in levels[start + 1 : stop] if isinstance(each, tuple)]
        texts = ("x", *(text for text in fixed if isinstance(text, str)), "x")
        for first in names_of(self._flow, [bind(self._pattern, {one: tuple(map(Literal, texts))})]):
            yield from self._same_made(first)

    def _same_made(self, first: tuple[str, ...]) -> Iterator[NamePair]:
        """Yield `first` with source names that may have its target name."""
        found = translate_by_flow(self._flow, first)
        if found is None:
            return
        for pattern in source_patterns(self._flow, exact_pattern(found.target_levels)):
            yield from self._pair(first, pattern)

    def _by_trial(self) -> Iterator[NamePair]:
        """Yield trial names with equal target names."""
        seen: dict[str, tuple[str, ...]] = {}
        for levels in trial_names(self._flow, MAX_TRIALS):
            found = translate_by_flow(self._flow, levels)
            if found is not None and seen.setdefault(found.target_name, levels) != levels:
                yield seen[found.target_name], levels

    def _bound_pairs(self, one: Bindings, other: Bindings) -> Iterator[NamePair]:
        for first in names_of(self._flow, [bind(self._pattern, one)]):
            kept = bind_to_name(self._pattern, first, self._others(other), other)
            yield from self._pair(first, kept)

    def _pair(self, first: tuple[str, ...], pattern: Pattern) -> Iterator[NamePair]:
        """Yield `first` with another name of `pattern`."""
        second = find_example([[pattern]], [*self._excludes, exact_pattern(first)])
        if second is not None:
            yield first, second

    def _others(self, places: Collection[int]) -> set[int]:
        levels = enumerate(self._pattern.levels)
        return {at for at, level in levels if at not in places and not isinstance(level, Literal)}


def _finding(flow: Flow, loss: Loss, one: TranslatedName, other: TranslatedName) -> RouteFinding:
    reason, hint = _reason(flow, loss)
    text = (
        f"{one.source_name!r} and {other.source_name!r} both become {one.target_name!r} "
        f"at {flow.target.endpoint!r}: {reason}"
    )
    severity: Severity = "error"
    if flow.target.lossy:
        severity, hint = "note", "the target is declared lossy"
    names = (one.source_name, other.source_name)
    return flow.finding("not-injective", severity, text, hint, names)


def _reason(flow: Flow, loss: Loss) -> tuple[str, str]:
    """Return why names become one, and what to do."""
    words = flow.variable_names
    if loss.unused:
        names = " and ".join(dict.fromkeys(words[at] for at in loss.unused))
        reason, hint = f"the template leaves out {names}", "use every capture in the template"
        if THE_KEY in names:
            hint = "write `key: '{key...}'` at the source, and use it in the template"
    elif loss.ambiguous:
        reason = f"the parts of {_level(flow, loss.ambiguous[0])!r} have no certain boundary"
        hint = "give each capture a level of its own"
    elif loss.rests:
        names = " and ".join(words[at] for at in loss.rests)
        reason = f"{names} have no certain boundary between them"
        hint = f"write the level {BOUNDARY!r} between them"
    elif loss.calls:
        calls = "|".join(function.name for function in loss.calls[0].functions)
        reason, hint = f"{calls!r} gives different texts one result", "leave the function out"
    else:
        written = flow.target.renderer.replacement
        lacking = f"characters that {flow.target.system} cannot spell"
        reason = f"'on_unmappable: replace' writes {written!r} for {lacking}"
        hint = "use 'on_unmappable: escape' or 'on_unmappable: reject'"
    return reason, f"{hint}, or write 'lossy: true' at the target"


def _level(flow: Flow, level: tuple[Part, ...]) -> str:
    words = flow.variable_names
    texts: list[str] = []
    for part in level:
        if isinstance(part, str):
            texts.append(part)
        else:
            texts += [words[at] for at in part.positions]
    return "".join(texts)
