"""Header rules of a target: map, rename, drop and set, applied in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from gateway.errors import SubjectError, TranslationError
from gateway.model.dead_letter_rule import HEADER
from gateway.model.message import NO_HEADERS, Headers, Value
from gateway.routing.header_draft import HeaderDraft, HeaderName, parse_header_name, simple_text
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.template import (
    NO_CONSTANTS,
    FieldPlaceholder,
    TextTemplate,
    parse_text_template,
)
from gateway.routing.template_functions import Levels, Report, TextLocation, refuse, reported

ALWAYS_PRESENT = ("mode", "retained")  # fields that each message has
MAP_DEFAULT = "*"  # key of a map: the value for all values without a key


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """The header rules of one target; see `parse_header_rules`."""

    maps: tuple[tuple[HeaderName, Mapping[str, Value]], ...] = ()
    renames: tuple[tuple[HeaderName, HeaderName], ...] = ()
    drops: tuple[HeaderName, ...] = ()
    keeps: tuple[HeaderName, ...] = ()  # exceptions to `drops`
    sets: tuple[tuple[HeaderName, Value | TextTemplate], ...] = ()

    def apply(self, headers: Headers, now_us: int) -> Headers:
        """Return the headers for the target; the same object when no rule changes anything.

        Raises:
            TranslationError: a value does not fit its field.
        """
        if self is NO_RULES:
            return headers
        draft = HeaderDraft(headers, now_us)
        for name, table in self.maps:
            value = draft.read(name)
            if (made := _mapped(value, table)) is not value:
                draft.write(name, made)
        moved = [(old, new, draft.read(old)) for old, new in self.renames]
        moved = [each for each in moved if each[2] is not None]
        for old, _, _ in moved:
            draft.write(old, None)
        for _, new, value in moved:
            draft.write(new, value)
        for name in self.drops:
            self._drop(name, draft)
        for name, wanted in self.sets:
            if isinstance(wanted, TextTemplate):
                raise TranslationError("headers", name.text, HEADER, "its captures are not bound")
            draft.write(name, wanted)
        return draft.finish()

    def _drop(self, name: HeaderName, draft: HeaderDraft) -> None:
        if name.is_field or not name.text.endswith("*"):
            draft.write(name, None)
            return
        for each in [each for each in draft.properties if _selects_property(name.text, each)]:
            if not any(_selects_property(keep.text, each) for keep in self.keeps):
                draft.write(HeaderName(each, is_field=False), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the captures in the values to set."""
        templates = (value for _, value in self.sets if isinstance(value, TextTemplate))
        return tuple(name for template in templates for name in template.names)

    @property
    def fields(self) -> tuple[FieldPlaceholder, ...]:
        """The fields of messages in the values to set."""
        templates = (value for _, value in self.sets if isinstance(value, TextTemplate))
        return tuple(each for template in templates for each in template.fields)

    def own_text(self, name: HeaderName, value: str) -> str:
        """Return the beginning of a value of these rules that no message decides."""
        for each, wanted in self.sets:
            if each == name:
                parts = wanted.parts if isinstance(wanted, TextTemplate) else (wanted,)
                return parts[0] if parts and isinstance(parts[0], str) else ""
        tables = (table.values() for each, table in self.maps if each == name)
        return value if any(value in values for values in tables) else ""

    def bind(self, captures: Mapping[str, Levels]) -> HeaderRules:
        """Fill in the captures of one name; the same object when no rule uses a capture.

        Raises:
            TranslationError: a function does not find its part, or the message lacks a field.
        """
        if not any(isinstance(value, TextTemplate) for _, value in self.sets):
            return self
        sets = tuple(
            (name, value.expand(captures) if isinstance(value, TextTemplate) else value)
            for name, value in self.sets
        )
        return replace(self, sets=sets)

    def writes(self, name: str) -> bool:
        """Return whether a rule gives the property `name` a value."""
        written = [*self.maps, *self.sets, *((new, None) for _, new in self.renames)]
        return any(each.text == name and not each.is_field for each, _ in written)

    def inverted(self) -> HeaderRules:
        """Return the rules of the reverse route: the inverse renames, if all have an inverse.

        A rename of a field has none, because the property may not fit the field; a rename to
        `mode` or `retained` has none, because each message has both. Other rules have no inverse.
        """
        fixed = any(
            old.is_field or (new.is_field and new.text in ALWAYS_PRESENT)
            for old, new in self.renames
        )
        if fixed or not self.renames:
            return NO_RULES
        return HeaderRules(renames=tuple((new, old) for old, new in self.renames))

    def with_property(self, name: str, value: Value) -> HeaderRules:
        """Add a property to set; see `gateway.routing.tags`."""
        return replace(self, sets=(*self.sets, (HeaderName(name, is_field=False), value)))


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
    report: Report = refuse,
) -> HeaderRules:
    """Parse the rules of a configuration; texts to set may use the captures of `source`.

    `report` gets every fault instead of an exception; the rules are of no use then.

    Raises:
        SubjectError: with the dialect `headers` and the wrong name or value as its text.
    """
    checks = [
        *(partial(_check_name, name, name) for name in (*maps, *renames, *renames.values(), *sets)),
        *(partial(_check_name, name, name.removesuffix("*")) for name in (*drops, *keeps)),
        *(partial(_check_value, name, None) for name in (*drops, *renames)),
        *(partial(_check_value, each, made) for each in maps for made in maps[each].values()),
    ]
    for check in checks:
        with reported(report):
            check()
    parsed_renames: tuple[tuple[HeaderName, HeaderName], ...] = ()
    with reported(report):
        parsed_renames = _parse_renames(renames)
    values: list[tuple[str, Value | TextTemplate]] = []
    for name, text in sets.items():
        with reported(report):
            value = _value(text, source, constants)
            _check_value(name, value)
            values.append((name, value))
    return HeaderRules(
        tuple((parse_header_name(name), MappingProxyType(dict(maps[name]))) for name in maps),
        parsed_renames,
        tuple(map(parse_header_name, drops)),
        tuple(map(parse_header_name, keeps)),
        tuple((parse_header_name(name), value) for name, value in values),
    )


def _parse_renames(renames: Mapping[str, str]) -> tuple[tuple[HeaderName, HeaderName], ...]:
    parsed = tuple((parse_header_name(old), parse_header_name(new)) for old, new in renames.items())
    targets = [new for _, new in parsed]
    for (old, new), text in zip(parsed, renames.values(), strict=True):
        if targets.count(new) > 1 or old == new:
            reason = "two renames have this new name, or it is the old name"
            raise SubjectError("headers", text, 0, "header", reason)
    return parsed


def _mapped(value: Value, table: Mapping[str, Value]) -> Value:
    """Look up a value by its text; a value without a key or a text stays."""
    text = simple_text(value)
    return value if text is None else table.get(text, table.get(MAP_DEFAULT, value))


def _selects_property(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _value(
    value: Value, source: SourcePattern, constants: Mapping[str, str]
) -> Value | TextTemplate:
    if not isinstance(value, str):
        return value
    template = parse_text_template(TextLocation("headers", value), source, constants)
    return template if template.names else template.expand({})


def _check_name(text: str, stem: str) -> None:
    if not parse_header_name(text).text or "*" in stem:
        reason = "a name must not be empty, and only a name to drop or keep may end with a star"
        raise SubjectError("headers", text, 0, "header", reason)


def _check_value(name: str, value: Value | TextTemplate) -> None:
    if isinstance(value, TextTemplate):
        return
    try:
        HeaderDraft(NO_HEADERS, 0).write(parse_header_name(name), value)
    except TranslationError as error:
        raise SubjectError("headers", name, 0, error.rule, error.reason) from None
