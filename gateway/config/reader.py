"""Typed values from YAML nodes, as the dataclasses declare them; it knows no field by name.

A field says with its type and its metadata what it takes:

    key        the word in the file, when it is not the field's name
    minimum, maximum, choices   what a value must keep to
    secret     the value should be a reference, and is never repeated in a finding
    doc        one line for people and for the JSON Schema
"""

from __future__ import annotations

import os
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin

import yaml

from gateway.config.nodes import Place, did_you_mean, entries, key_faults, place_of
from gateway.errors import ConfigError, shown

T = TypeVar("T")
Route_: typing.TypeAlias = tuple[str | int, ...]

MAX_SECRET = 1 << 20  # bytes; what is longer is no secret, or never ends
_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_TRUE, _FALSE = {"true", "yes", "on"}, {"false", "no", "off"}
_FAILED: Any = object()
_YAML = yaml.constructor.SafeConstructor()
NOTHING: Mapping[str, object] = types.MappingProxyType({})


class Reader:
    """Reads values and keeps every finding and every place; mutable because it collects them."""

    def __init__(self, path: str, environment: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.findings: list[ConfigError] = []
        self.places: dict[Route_, Place] = {}
        self._environment = os.environ if environment is None else environment
        self._readers: dict[Any, Any] = {str: self._text, int: self._int}
        self._readers |= {float: self._float, bool: self._bool}

    def read(
        self,
        node: yaml.Node,
        kind: type[T],
        at: Route_ = (),
        given: Mapping[str, object] | None = None,
    ) -> T | None:
        """The value of `node` as a `kind`, or None when it has findings of its own.

        `given` fields are not read from the file; those given as None are for the caller alone.
        """
        if given is None:
            value = self._value(node, kind, at, {})
        else:
            self.places.setdefault(at, place_of(self.path, node))
            value = self._dataclass(node, kind, at, given)
        return None if value is _FAILED else cast("T", value)

    def split(
        self,
        node: yaml.MappingNode,
        kinds: tuple[type, ...],
        at: Route_,
        given: Mapping[str, object],
    ) -> tuple[Any, ...] | None:
        """One mapping whose fields belong to several dataclasses; None when any has findings.

        `given` goes to the first of `kinds`, as in `read`.
        """
        self.findings += key_faults(self.path, node)
        words = {word: kind for kind in reversed(kinds) for word in declared(kind)}
        shares: dict[type, list[tuple[yaml.Node, yaml.Node]]] = {kind: [] for kind in kinds}
        for key, child in entries(node):
            shares[words.get(key.value, kinds[0])].append((key, child))
        values = [
            self.read(
                yaml.MappingNode(node.tag, shares[kind], node.start_mark, node.end_mark),
                kind,
                at,
                given if kind is kinds[0] else NOTHING,
            )
            for kind in kinds
        ]
        return None if any(value is None for value in values) else tuple(values)

    def report(self, at: Route_, rule: str, reason: str, hint: str = "") -> None:
        """A finding at the value read from `at`, or at the nearest value around it."""
        while at and at not in self.places:
            at = at[:-1]
        place = self.places.get(at) or Place(self.path, 1, 1)
        self.findings.append(place.error(rule, reason, hint))

    def _value(  # noqa: PLR0911  # one return a kind of type
        self, node: yaml.Node, kind: Any, at: Route_, meta: Mapping[str, Any]
    ) -> Any:
        self.places.setdefault(at, place_of(self.path, node))  # a key's place, when it is known
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            return self._optional(node, kind, at, meta)
        if origin is Literal:
            return self._choice(node, get_args(kind), at)
        if origin is tuple:
            return self._list(node, get_args(kind)[0], at, meta)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(node, get_args(kind)[1], at)
        if is_dataclass(kind):
            return self._dataclass(node, kind, at)
        if isinstance(kind, type) and issubclass(kind, Enum):
            word = self._choice(node, tuple(str(member.value) for member in kind), at)
            return word if word is _FAILED else next(m for m in kind if str(m.value) == word)
        value = self._readers[kind](node, at, meta)
        return value if value is _FAILED else self._in_range(value, node, at, meta)

    def _optional(self, node: yaml.Node, kind: Any, at: Route_, meta: Mapping[str, Any]) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return None
        inner = [each for each in get_args(kind) if each is not type(None)]
        return self._scalar(node, at) if len(inner) > 1 else self._value(node, inner[0], at, meta)

    def _scalar(self, node: yaml.Node, at: Route_) -> Any:
        """Text, a number or a truth, as YAML itself reads it."""
        if not isinstance(node, yaml.ScalarNode):
            return self._fail(at, "type", f"expected one value, not {_noun(node)}")
        kind = {"int": int, "float": float, "bool": bool}.get(node.tag.rpartition(":")[2], str)
        return self._readers[kind](node, at, {})

    def _dataclass(
        self, node: yaml.Node, kind: Any, at: Route_, given: Mapping[str, object] = NOTHING
    ) -> Any:
        if not isinstance(node, yaml.MappingNode):
            return self._fail(at, "type", f"expected a mapping, not {_noun(node)}")
        self.findings += key_faults(self.path, node)
        known = declared(kind)
        values: dict[str, Any] = {n: v for n, v in given.items() if v is not None}
        known = {word: field for word, field in known.items() if word not in given}
        for key, child in entries(node):
            if key.value in given and given[key.value] is None:
                continue
            if (field := known.get(key.value)) is None:
                self.places[(*at, key.value)] = place_of(self.path, key)
                hint = did_you_mean(key.value, known)
                self.report((*at, key.value), "unknown-field", f"unknown field {key.value!r}", hint)
                continue
            hints = type_hints(kind)
            value = self._value(child, hints[field.name], (*at, key.value), field.metadata)
            values[field.name] = value
        return self._build(kind, known, values, at)

    def _build(
        self, kind: Any, known: Mapping[str, Field[Any]], values: dict[str, Any], at: Route_
    ) -> Any:
        failed = any(value is _FAILED for value in values.values())
        for word, field in known.items():
            if field.name not in values and required(field):
                self.report(at, "missing-field", f"missing field {word!r}", _doc(field))
                failed = True
        if failed:
            return _FAILED
        try:
            return kind(**values)
        except ValueError as error:
            return self._fail(at, "value", str(error))

    def _mapping(self, node: yaml.Node, kind: Any, at: Route_) -> Any:
        if not isinstance(node, yaml.MappingNode):
            return self._fail(at, "type", f"expected a mapping, not {_noun(node)}")
        self.findings += key_faults(self.path, node)
        read = {k.value: self._value(v, kind, (*at, k.value), {}) for k, v in entries(node)}
        return {key: value for key, value in read.items() if value is not _FAILED}

    def _list(self, node: yaml.Node, kind: Any, at: Route_, meta: Mapping[str, Any]) -> Any:
        children = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not isinstance(node, yaml.SequenceNode):  # one value stands for a list of one
            value = self._value(node, kind, (*at, 0), meta)
            return _FAILED if value is _FAILED else (value,)
        read = [self._value(c, kind, (*at, i), meta) for i, c in enumerate(children)]
        return _FAILED if any(v is _FAILED for v in read) else tuple(read)

    def _choice(self, node: yaml.Node, words: tuple[str, ...], at: Route_) -> Any:
        text = self._text(node, at, {})
        if text is _FAILED or text in words:
            return text
        return self._fail(
            at, "choice", f"unknown value {_written(node)!r}", did_you_mean(text, words)
        )

    def _text(self, node: yaml.Node, at: Route_, meta: Mapping[str, Any]) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            return self._fail(at, "type", f"expected text, not {_noun(node)}")
        if node.tag == "tag:yaml.org,2002:null" and node.value != "":
            return self._fail(at, "type", "expected text, not null", "write it in quotes")
        if meta.get("secret") and not _REFERENCE.search(node.value):
            hint = "write ${env:NAME} or ${file:/path}"
            return self._fail(at, "plain-secret", "a secret stands in the file", hint)
        return self._resolve(node.value, at)

    def _resolve(self, text: str, at: Route_) -> Any:
        missing: list[str] = []

        def value(found: re.Match[str]) -> str:
            resolved = self._lookup(found[1], found[2])
            if resolved is None:
                missing.append(found[0])
            return resolved or ""

        resolved = _REFERENCE.sub(value, text)
        if missing:
            hint = "set the variable, or mount the file, before the gateway starts"
            return self._fail(at, "missing-secret", f"nothing found for {missing[0]}", hint)
        return resolved

    def _lookup(self, source: str, name: str) -> str | None:
        if source == "env":
            return self._environment.get(name)
        try:
            with Path(name).open("rb") as file:
                data = file.read(MAX_SECRET + 1)
            return None if len(data) > MAX_SECRET else data.decode().rstrip("\r\n")
        except (OSError, ValueError):
            return None

    def _number(self, node: yaml.Node, at: Route_, kind: type[int | float], noun: str) -> Any:
        text = self._text(node, at, {})
        if text is _FAILED:
            return _FAILED
        try:
            value = _figure(node, text)
            whole = int(value)
        except (ValueError, OverflowError):  # the latter of an infinity
            return self._fail(at, "type", f"expected {noun}, not {shown(_written(node))}")
        if kind is float:
            return float(value)
        if whole != value:
            return self._fail(at, "type", f"expected {noun}, not {shown(_written(node))}")
        return whole

    def _int(self, node: yaml.Node, at: Route_, _meta: Mapping[str, Any]) -> Any:
        return self._number(node, at, int, "a whole number")

    def _float(self, node: yaml.Node, at: Route_, _meta: Mapping[str, Any]) -> Any:
        return self._number(node, at, float, "a number")

    def _bool(self, node: yaml.Node, at: Route_, _meta: Mapping[str, Any]) -> Any:
        text = self._text(node, at, {})
        if text is _FAILED:
            return _FAILED
        if text.lower() in _TRUE | _FALSE and _is_plain(node, "bool"):
            return text.lower() in _TRUE
        return self._fail(at, "type", f"expected true or false, not {_written(node)!r}")

    def _in_range(self, value: Any, node: yaml.Node, at: Route_, meta: Mapping[str, Any]) -> Any:
        low, high = meta.get("minimum"), meta.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            allowed = f"{'' if low is None else low}..{'' if high is None else high}"
            return self._fail(at, "range", f"{value} is outside {allowed}")
        choices = meta.get("choices")
        if choices and value not in choices:
            words = [str(each) for each in choices]
            written = _written(node)
            return self._fail(
                at, "choice", f"unknown value {written!r}", did_you_mean(written, words)
            )
        return value

    def _fail(self, at: Route_, rule: str, reason: str, hint: str = "") -> Any:
        self.report(at, rule, reason, hint)
        return _FAILED


def _is_plain(node: yaml.Node, *kinds: str) -> bool:
    """Whether YAML, and so an editor, sees one of `kinds`; what a reference stands for is text."""
    return node.tag.rpartition(":")[2] in kinds or _REFERENCE.search(node.value) is not None


def _figure(node: yaml.Node, text: str) -> int | float:
    """A number as YAML reads it, or as a reference gives it.

    Raises:
        ValueError: it is none.
    """
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":int"):
        return int(_YAML.construct_yaml_int(node))
    if not _is_plain(node, "float"):
        raise ValueError(text)
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":float"):
        return float(_YAML.construct_yaml_float(node))
    return float(text) if set(text) & set(".eE") else int(text)


@cache
def declared(kind: type) -> dict[str, Field[Any]]:
    """The fields of a dataclass by the word that stands for them in a file."""
    return {
        field.metadata.get("key", field.name): field
        for field in fields(kind)
        if field.init and not field.metadata.get("hidden")
    }


@cache
def type_hints(kind: type) -> dict[str, Any]:
    return {n: h for n, h in typing.get_type_hints(kind).items() if get_origin(h) is not ClassVar}


def required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _doc(field: Field[Any]) -> str:
    return str(field.metadata.get("doc", ""))


def _written(node: yaml.Node) -> str:
    """What stands in the file; a reference stays one, for its value may be a secret."""
    return str(node.value)


def _noun(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
