"""Header rules of a target: map, rename, drop and set, in that order; they know no system.

What a target cannot carry at all is not decided here, and neither is how it spells an address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from gateway.errors import SubjectError, TranslationError
from gateway.model.message import PLAIN, Headers, Value
from gateway.routing.captures import SourcePattern
from gateway.routing.functions import Levels, Place
from gateway.routing.header_draft import Draft, Slot, find_slot, text_of
from gateway.routing.phrase import Phrase, parse_phrase
from gateway.routing.template import NO_CONSTANTS

OTHERWISE = "*"  # the key of a map for values it does not name


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """What happens to headers on the way to a target; see `parse_header_rules`."""

    maps: tuple[tuple[Slot, Mapping[str, Value]], ...] = ()
    renames: tuple[tuple[Slot, Slot], ...] = ()
    drops: tuple[Slot, ...] = ()
    keeps: tuple[Slot, ...] = ()  # exceptions from `drops`
    sets: tuple[tuple[Slot, Value | Phrase], ...] = ()

    def apply(self, headers: Headers, now_us: int) -> Headers:
        """The headers for the target; the same object when no rule changes anything.

        Raises:
            TranslationError: a value does not fit the field that a rule writes it to.
        """
        if self is NO_RULES:
            return headers
        draft = Draft(headers, now_us)
        for slot, table in self.maps:
            value = draft.read(slot)
            if (made := _mapped(value, table)) is not value:
                draft.write(slot, made)
        moved = [(old, new, draft.read(old)) for old, new in self.renames]
        moved = [each for each in moved if each[2] is not None]
        for old, _, _ in moved:
            draft.write(old, None)
        for _, new, value in moved:
            draft.write(new, value)
        for slot in self.drops:
            self._drop(slot, draft)
        for slot, wanted in self.sets:
            if isinstance(wanted, Phrase):
                raise TranslationError("headers", slot.name, "header", "its captures are not bound")
            draft.write(slot, wanted)
        return draft.finish()

    def _drop(self, slot: Slot, draft: Draft) -> None:
        if slot.header or not slot.name.endswith("*"):
            draft.write(slot, None)
            return
        for name in [name for name in draft.properties if _covers(slot.name, name)]:
            if not any(_covers(each.name, name) for each in self.keeps):
                draft.write(Slot(name, header=False), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The captures that values to set use."""
        phrases = (value for _, value in self.sets if isinstance(value, Phrase))
        return tuple(name for phrase in phrases for name in phrase.names)

    def bind(self, captures: Mapping[str, Levels]) -> HeaderRules:
        """These rules with the captures of one name; the same object when they use none.

        Raises:
            TranslationError: a function does not find in them what it asks for.
        """
        if not any(isinstance(value, Phrase) for _, value in self.sets):
            return self
        return replace(
            self,
            sets=tuple(
                (slot, value.expand(captures) if isinstance(value, Phrase) else value)
                for slot, value in self.sets
            ),
        )

    def turned(self) -> HeaderRules:
        """What undoes the renames on a way back, if all can be; no other rule can.

        A field cannot be filled there, for nobody made sure that its property fits, and `mode`
        cannot be taken away.
        """
        firm = any(old.header or new == Slot("mode", header=True) for old, new in self.renames)
        if firm or not self.renames:
            return NO_RULES
        return HeaderRules(renames=tuple((new, old) for old, new in self.renames))

    def with_property(self, name: str, value: Value) -> HeaderRules:
        """These rules, and one more property; see `gateway.routing.tags`."""
        return replace(self, sets=(*self.sets, (Slot(name, header=False), value)))


NO_RULES = HeaderRules()


def parse_header_rules(  # noqa: PLR0913  # the keys of a configuration
    *,
    maps: Mapping[str, Mapping[str, Value]],
    renames: Mapping[str, str],
    drops: Sequence[str],
    keeps: Sequence[str],
    sets: Mapping[str, Value],
    source: SourcePattern,
    constants: Mapping[str, str] = NO_CONSTANTS,
) -> HeaderRules:
    """Rules as a configuration writes them; texts to set may use the captures of `source`.

    Raises:
        SubjectError: of the dialect `headers`; its text is the name or value that is wrong.
    """
    for name in (*maps, *renames, *renames.values(), *sets):
        _check_name(name, name)
    for name in (*drops, *keeps):
        _check_name(name, name.removesuffix("*"))
    targets = [find_slot(name) for name in renames.values()]
    for old, new in renames.items():
        if targets.count(find_slot(new)) > 1 or find_slot(old) == find_slot(new):
            raise SubjectError("headers", new, 0, "header", "it is the new name of two, or its own")
    values = [(name, _value(value, source, constants)) for name, value in sets.items()]
    tried: list[tuple[str, Value]] = [(name, None) for name in (*drops, *renames)]
    tried += [(name, made) for name, table in maps.items() for made in table.values()]
    for name, value in (*tried, *values):
        _try(name, value)
    return HeaderRules(
        tuple((find_slot(name), MappingProxyType(dict(table))) for name, table in maps.items()),
        tuple((find_slot(old), find_slot(new)) for old, new in renames.items()),
        tuple(map(find_slot, drops)),
        tuple(map(find_slot, keeps)),
        tuple((find_slot(name), value) for name, value in values),
    )


def _mapped(value: Value, table: Mapping[str, Value]) -> Value:
    """By its text; what the table does not name, and what is no text, stays."""
    text = text_of(value)
    return value if text is None else table.get(text, table.get(OTHERWISE, value))


def _covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _value(value: Value, source: SourcePattern, constants: Mapping[str, str]) -> Value | Phrase:
    if not isinstance(value, str):
        return value
    phrase = parse_phrase(Place("headers", value), source, constants)
    return phrase if phrase.fixed is None else phrase.fixed


def _check_name(text: str, stem: str) -> None:
    if not find_slot(text).name or "*" in stem:
        reason = "a name is not empty, and a star ends one that is dropped or kept"
        raise SubjectError("headers", text, 0, "header", reason)


def _try(name: str, value: Value | Phrase) -> None:
    if isinstance(value, Phrase):
        return
    try:
        Draft(PLAIN, 0).write(find_slot(name), value)
    except TranslationError as error:
        raise SubjectError("headers", name, 0, error.rule, error.reason) from None
