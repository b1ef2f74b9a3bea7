"""Some fields of a JSON document, and texts set in it: `payload: {pick: [a, b.c], set: {site: x}}`.

A document is read whole and written again. Numbers keep their digits, so that no value changes. A
document that cannot be read is a dead letter: it is never sent unpicked, because a pick is how
people keep fields in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gateway.errors import SubjectError, TranslationError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.message import Payload, Value
from gateway.routing.json_payload import load_json, refuse_depth
from gateway.routing.payload_conversion import parse_conversion
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.template import (
    NO_CONSTANTS,
    FieldPlaceholder,
    TextTemplate,
    parse_text_template,
)
from gateway.routing.template_functions import Levels, TextLocation

DEFAULT_MAX: Final = 256 << 10  # bytes of a document
Path: TypeAlias = tuple[str, ...]  # the keys of a field, from the outside in


class _Digits(str):
    """A number as its document spells it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PayloadPick:
    """The fields of a document that a copy has; see `parse_pick`.

    Without `paths` it has all. Units: `max_size` in bytes.
    """

    paths: tuple[Path, ...] | None
    sets: tuple[tuple[Path, Value | TextTemplate], ...] = ()
    max_size: int = DEFAULT_MAX
    encoding: str = "utf-8"

    @property
    def text(self) -> str:
        """The conversion as a configuration names it."""
        return "pick"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the captures in the values to set."""
        return tuple(name for template in self._templates for name in template.names)

    @property
    def fields(self) -> tuple[FieldPlaceholder, ...]:
        """The fields of messages in the values to set."""
        return tuple(each for template in self._templates for each in template.fields)

    @property
    def _templates(self) -> list[TextTemplate]:
        return [value for _, value in self.sets if isinstance(value, TextTemplate)]

    def bind(self, captures: Mapping[str, Levels]) -> PayloadPick:
        """Fill in the captures of one name; the same object when no value uses one.

        Raises:
            TranslationError: a function does not find its part, or the message lacks a field.
        """
        if not self._templates:
            return self
        sets = tuple(
            (path, value.expand(captures) if isinstance(value, TextTemplate) else value)
            for path, value in self.sets
        )
        return replace(self, sets=sets)

    def convert(self, payload: Payload) -> bytes:
        """Return the picked document as JSON in UTF-8.

        Raises:
            TranslationError: with the rule `payload`; its text never quotes the payload.
        """
        try:
            document = self._read(payload)
            found = document if self.paths is None else _picked(document, self.paths)
            for path, value in self.sets:
                if isinstance(value, TextTemplate):
                    raise _refused("its captures are not bound")
                found = _with_value(found, path, value)
            return _written(found).encode()
        except UnicodeEncodeError:
            raise _refused("holds half a character") from None
        except ValueError as error:
            raise _refused(str(error)) from None

    def _read(self, payload: Payload) -> Mapping[str, Value]:
        if isinstance(payload, Mapping):
            refuse_depth(payload)
            if len(_written(payload).encode()) > self.max_size:
                raise ValueError(f"is past `max`, which is {self.max_size} bytes")
            return payload
        size = len(payload if isinstance(payload, bytes) else payload.encode())
        if size > self.max_size:
            raise ValueError(f"has {size} bytes, and `max` is {self.max_size}")
        try:
            text = payload if isinstance(payload, str) else payload.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise ValueError(f"is not {self.encoding}") from error
        found = load_json(text, parse_int=_Digits, parse_float=_Digits)
        if not isinstance(found, dict):
            raise _refused("is JSON, but not an object")
        return found


def parse_pick(  # the keys of a configuration
    *,
    pick: Sequence[str] | None,
    sets: Mapping[str, Value],
    max_size: int,
    encoding: str,
    source: SourcePattern,
    constants: Mapping[str, str] = NO_CONSTANTS,
) -> PayloadPick:
    """Parse the fields of a configuration; texts to set may use the captures of `source`.

    Raises:
        SubjectError: with the dialect `payload`; a field has an empty key, a text is illegal, or
            the encoding is unknown.
    """
    values: list[tuple[Path, Value | TextTemplate]] = []
    for name, text in sets.items():
        value: Value | TextTemplate = text
        if isinstance(text, str):
            template = parse_text_template(TextLocation("payload", text), source, constants)
            value = template if template.names else template.expand({})
        values.append((_parse_path(name), value))
    paths = None if pick is None else tuple(map(_parse_path, pick))
    known = parse_conversion("json", encoding).encoding
    return PayloadPick(paths, tuple(values), max_size, known)


def _parse_path(text: str) -> Path:
    keys = tuple(text.split("."))
    if not all(keys):
        raise SubjectError("payload", text, 0, PAYLOAD, "a key is empty; write KEY or KEY.KEY")
    return keys


def _picked(document: Mapping[str, Value], paths: Sequence[Path]) -> dict[str, Value]:
    """Return the fields at `paths`, those that are there; a whole object has all of its own."""
    found: dict[str, Value] = {}
    for key in dict.fromkeys(path[0] for path in paths):
        inner = [path[1:] for path in paths if path[0] == key]
        if key not in document:
            continue
        value = document[key]
        if () in inner:
            found[key] = value
        elif isinstance(value, Mapping) and (part := _picked(value, inner)):
            found[key] = part
    return found


def _with_value(document: Mapping[str, Value], path: Path, value: Value) -> dict[str, Value]:
    """Return the document with a value at `path`, and objects around it.

    Raises:
        TranslationError: another value is in the place of such an object.
    """
    key, *rest = path
    if not rest:
        return {**document, key: value}
    inner = document.get(key, {})
    if not isinstance(inner, Mapping):
        raise _refused(f"has a field {key!r} that is no object, in which `set` has a field")
    return {**document, key: _with_value(inner, tuple(rest), value)}


def _written(value: Value) -> str:
    """Return a value as JSON.

    Raises:
        ValueError: it has no form in JSON.
    """
    match value:
        case _Digits():
            return str(value)
        case Mapping():
            pairs = (f"{_written(key)}: {_written(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list() | tuple():
            return f"[{', '.join(map(_written, value))}]"
        case bytes():
            raise ValueError("holds bytes, which have no JSON form")
        case _:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _refused(reason: str) -> TranslationError:
    return TranslationError("payload", "pick", PAYLOAD, reason)
