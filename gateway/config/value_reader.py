"""Typed values from YAML nodes, as settings dataclasses declare them.

The declarations are made by `gateway.setting.setting`; its arguments are explained there.
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

from gateway.config.nodes import (
    KeyPath,
    SourceLocation,
    did_you_mean,
    entries,
    key_faults,
    location_of,
)
from gateway.config.references import References
from gateway.errors import ConfigError, quoted

T = TypeVar("T")

MAX_SECRET = 1 << 20  # bytes; a larger or endless file is not a secret
MAX_DIGITS = 400  # characters of a number; the largest float has 309
MAX_INTEGER = (1 << 63) - 1  # of every whole number; databases and drivers take 64 bits
MAX_FLOAT = 10**9  # of every fraction and time; the system's timers take no more
NAMED_SECTIONS = (("routes",), ("tests",))  # the rules of a dialect decide about their texts
_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_TRUE, _FALSE = {"true", "yes", "on"}, {"false", "no", "off"}
_INVALID: Any = object()  # stands for a value with findings
_YAML = yaml.constructor.SafeConstructor()
NO_VALUES: Mapping[str, object] = types.MappingProxyType({})


class ConfigReader:
    """Reader of one file: typed values, their source locations, and all findings.

    Mutable: collects locations and findings.
    """

    def __init__(
        self,
        path: str,
        environment: Mapping[str, str] | None = None,
        references: References | None = None,
    ) -> None:
        self.path = path
        self.references = references or References()
        self.findings: list[ConfigError] = []
        self.locations: dict[KeyPath, SourceLocation] = {}
        self._environment = os.environ if environment is None else environment
        self._readers: dict[Any, Any] = {str: self._text, int: self._int}
        self._readers |= {float: self._float, bool: self._bool}

    def read(
        self,
        node: yaml.Node,
        kind: type[T],
        at: KeyPath = (),
        preset: Mapping[str, object] | None = None,
    ) -> T | None:
        """Return the value of `node` as a `kind`, or None when it has findings.

        `preset` gives fields that are not read from the file; a preset None is a key that only
        the caller reads.
        """
        if preset is None:
            value = self._value(node, kind, at, {})
        else:
            self.locations.setdefault(at, location_of(self.path, node))
            value = self._dataclass(node, kind, at, preset)
        return None if value is _INVALID else cast("T", value)

    def read_several(
        self,
        node: yaml.MappingNode,
        kinds: tuple[type, ...],
        at: KeyPath,
        preset: Mapping[str, object],
    ) -> tuple[Any, ...] | None:
        """Read a mapping with the fields of several dataclasses; None when any has findings.

        `preset` belongs to the first of `kinds`, and works as in `read`.
        """
        self.findings += key_faults(self.path, node)
        owners: dict[str, type] = {}
        for kind in reversed(kinds):
            owners |= dict.fromkeys((*fields_by_key(kind), *renamed_keys(kind)), kind)
        shares: dict[type, list[tuple[yaml.Node, yaml.Node]]] = {kind: [] for kind in kinds}
        for key, child in entries(node):
            shares[owners.get(key.value, kinds[0])].append((key, child))
        values = [
            self.read(
                yaml.MappingNode(node.tag, shares[kind], node.start_mark, node.end_mark),
                kind,
                at,
                preset if kind is kinds[0] else NO_VALUES,
            )
            for kind in kinds
        ]
        return None if any(value is None for value in values) else tuple(values)

    def report(self, at: KeyPath, rule: str, reason: str, hint: str = "") -> None:
        """Add a finding at the value read from `at`, or at the nearest value around it."""
        while at and at not in self.locations:
            at = at[:-1]
        location = self.locations.get(at) or SourceLocation(self.path, 1, 1)
        self.findings.append(location.error(rule, reason, hint))

    def _value(  # noqa: PLR0911  # one return for each kind of type
        self, node: yaml.Node, kind: Any, at: KeyPath, meta: Mapping[str, Any]
    ) -> Any:
        self.locations.setdefault(at, location_of(self.path, node))  # a key's location has priority
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
            return word if word is _INVALID else next(m for m in kind if str(m.value) == word)
        value = self._readers[kind](node, at, meta)
        return value if value is _INVALID else self._in_range(value, node, at, meta)

    def _optional(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Mapping[str, Any]) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return None
        inner = [each for each in get_args(kind) if each is not type(None)]
        return self._scalar(node, at) if len(inner) > 1 else self._value(node, inner[0], at, meta)

    def _scalar(self, node: yaml.Node, at: KeyPath) -> Any:
        """Read text, a number or a truth value, as the YAML tag of the node says."""
        if not isinstance(node, yaml.ScalarNode):
            return self._fail(at, "type", f"expected one value, not {_describe(node)}")
        kind = {"int": int, "float": float, "bool": bool}.get(node.tag.rpartition(":")[2], str)
        return self._readers[kind](node, at, {})

    def _dataclass(
        self, node: yaml.Node, kind: Any, at: KeyPath, preset: Mapping[str, object] = NO_VALUES
    ) -> Any:
        if not isinstance(node, yaml.MappingNode):
            return self._fail(at, "type", f"expected a mapping, not {_describe(node)}")
        self.findings += key_faults(self.path, node)
        values: dict[str, Any] = {n: v for n, v in preset.items() if v is not None}
        known = {word: field for word, field in fields_by_key(kind).items() if word not in preset}
        hints = type_hints(kind)
        for key, child in entries(node):
            if key.value in preset and preset[key.value] is None:
                continue
            if (field := known.get(key.value)) is None:
                self._report_key(key, kind, known, at)
                continue
            value = self._value(child, hints[field.name], (*at, key.value), field.metadata)
            values[field.name] = value
        return self._build(kind, known, values, at)

    def _report_key(
        self, key: yaml.ScalarNode, kind: Any, known: Mapping[str, Field[Any]], at: KeyPath
    ) -> None:
        """Report a key that no field has, by its new name when an earlier version had it."""
        at = (*at, key.value)
        self.locations[at] = location_of(self.path, key)
        if now := renamed_keys(kind).get(key.value):
            names = " and ".join(repr(each) for each in now)
            hint = "write the new key" if len(now) == 1 else "write the new keys"
            self.report(at, "renamed-field", f"{key.value!r} is now called {names}", hint)
        else:
            hint = did_you_mean(key.value, known)
            self.report(at, "unknown-field", f"unknown field {key.value!r}", hint)

    def _build(
        self, kind: Any, known: Mapping[str, Field[Any]], values: dict[str, Any], at: KeyPath
    ) -> Any:
        failed = any(value is _INVALID for value in values.values())
        for word, field in known.items():
            if field.name not in values and is_required(field):
                self.report(at, "missing-field", f"missing field {word!r}", field.metadata["doc"])
                failed = True
        if failed:
            return _INVALID
        try:
            return kind(**values)
        except ValueError as error:
            return self._fail(at, "value", str(error))

    def _mapping(self, node: yaml.Node, kind: Any, at: KeyPath) -> Any:
        if not isinstance(node, yaml.MappingNode):
            return self._fail(at, "type", f"expected a mapping, not {_describe(node)}")
        self.findings += key_faults(self.path, node)
        read = {k.value: self._value(v, kind, (*at, k.value), {}) for k, v in entries(node)}
        return {key: value for key, value in read.items() if value is not _INVALID}

    def _list(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Mapping[str, Any]) -> Any:
        if not isinstance(node, yaml.SequenceNode):  # one value stands for a list of one
            value = self._value(node, kind, (*at, 0), meta)
            return _INVALID if value is _INVALID else (value,)
        read = [self._value(c, kind, (*at, i), meta) for i, c in enumerate(node.value)]
        return _INVALID if any(v is _INVALID for v in read) else tuple(read)

    def _choice(self, node: yaml.Node, words: tuple[str, ...], at: KeyPath) -> Any:
        text = self._text(node, at, {})
        if text is _INVALID or text in words:
            return text
        return self._fail(
            at, "choice", f"unknown value {_raw_text(node)!r}", did_you_mean(text, words)
        )

    def _text(self, node: yaml.Node, at: KeyPath, meta: Mapping[str, Any]) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            return self._fail(at, "type", f"expected text, not {_describe(node)}")
        if node.tag == "tag:yaml.org,2002:null" and node.value != "":
            return self._fail(at, "type", "expected text, not null", "write it in quotes")
        if meta.get("secret") and not _REFERENCE.search(node.value):
            hint = "write ${env:NAME} or ${file:/path}"
            return self._fail(at, "plain-secret", "the file contains a secret", hint)
        text = self._resolve(node.value, at)
        return text if text is _INVALID else self._encodable(text, at)

    def _encodable(self, text: str, at: KeyPath) -> Any:
        """Report a text that no path, host name or protocol can carry."""
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            return self._fail(at, "bad-text", "the text is not UTF-8")
        if "\0" in text and at[:1] not in NAMED_SECTIONS:
            return self._fail(at, "bad-text", "the text has a NUL character")
        return text

    def _resolve(self, text: str, at: KeyPath) -> Any:
        """Replace the references in `text` by the variables and file contents they name."""
        missing: list[str] = []

        def value(found: re.Match[str]) -> str:
            resolved = self._lookup(found[1], found[2])
            if resolved is None:
                missing.append(found[0])
            self.references.add(found[0], resolved or "")
            return resolved or ""

        resolved = _REFERENCE.sub(value, text)
        if missing:
            hint = "set the variable, or mount the file, before the gateway starts"
            return self._fail(at, "missing-secret", f"nothing found for {missing[0]}", hint)
        if resolved != text:
            self.references.add(text, resolved)
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

    def _number(self, node: yaml.Node, at: KeyPath, kind: type[int | float], noun: str) -> Any:
        text = self._text(node, at, {})
        if text is _INVALID:
            return _INVALID
        try:
            value = _parse_number(node, text)
            whole = int(value)
        except (ValueError, OverflowError, IndexError):  # an infinity; a tag on an empty text
            return self._fail(at, "type", f"expected {noun}, not {quoted(_raw_text(node))}")
        if abs(whole) > MAX_INTEGER and (kind is int or isinstance(value, int)):
            return self._fail(at, "too-large", f"{quoted(_raw_text(node))} has more than 64 bits")
        if kind is float:
            return float(value)
        if whole != value:
            return self._fail(at, "type", f"expected {noun}, not {quoted(_raw_text(node))}")
        return whole

    def _int(self, node: yaml.Node, at: KeyPath, _meta: Mapping[str, Any]) -> Any:
        return self._number(node, at, int, "a whole number")

    def _float(self, node: yaml.Node, at: KeyPath, _meta: Mapping[str, Any]) -> Any:
        return self._number(node, at, float, "a number")

    def _bool(self, node: yaml.Node, at: KeyPath, _meta: Mapping[str, Any]) -> Any:
        text = self._text(node, at, {})
        if text is _INVALID:
            return _INVALID
        if text.lower() in _TRUE | _FALSE and _may_be(node, "bool"):
            return text.lower() in _TRUE
        return self._fail(at, "type", f"expected true or false, not {_raw_text(node)!r}")

    def _in_range(self, value: Any, node: yaml.Node, at: KeyPath, meta: Mapping[str, Any]) -> Any:
        low, high = meta.get("minimum"), meta.get("maximum")
        if high is None and isinstance(value, float):
            high = MAX_FLOAT
        if (low is not None and value < low) or (high is not None and value > high):
            allowed = f"{'' if low is None else low}..{'' if high is None else high}"
            shown = value if _REFERENCE.search(node.value) is None else _raw_text(node)
            return self._fail(at, "range", f"{shown} is outside {allowed}")
        choices = meta.get("choices")
        if choices and value not in choices:
            words = [str(each) for each in choices]
            raw = _raw_text(node)
            return self._fail(at, "choice", f"unknown value {raw!r}", did_you_mean(raw, words))
        return value

    def _fail(self, at: KeyPath, rule: str, reason: str, hint: str = "") -> Any:
        self.report(at, rule, reason, hint)
        return _INVALID


def _may_be(node: yaml.Node, *tags: str) -> bool:
    """Return whether YAML reads `node` as one of `tags`, or it contains a reference."""
    return node.tag.rpartition(":")[2] in tags or _REFERENCE.search(node.value) is not None


def _parse_number(node: yaml.Node, text: str) -> int | float:
    """Parse a number as YAML does; `text` is the value of `node` with references resolved.

    Raises:
        ValueError: it is not a number.
        IndexError: it has the tag of a number and no digits.
    """
    if len(text) > MAX_DIGITS:
        raise ValueError(text[:MAX_DIGITS])
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":int"):
        return int(_YAML.construct_yaml_int(node))
    if not _may_be(node, "float"):
        raise ValueError(text)
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":float"):
        return float(_YAML.construct_yaml_float(node))
    return float(text) if set(text) & set(".eE") else int(text)


@cache
def fields_by_key(kind: type) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass by their keys in a file."""
    return {field.metadata.get("key", field.name): field for field in fields(kind) if field.init}


@cache
def renamed_keys(kind: type) -> dict[str, tuple[str, ...]]:
    """Return the present keys of a dataclass by their names in earlier versions."""
    now: dict[str, tuple[str, ...]] = {}
    for key, field in fields_by_key(kind).items():
        if old := field.metadata.get("renamed_from"):
            now[old] = (*now.get(old, ()), key)
    return now


@cache
def type_hints(kind: type) -> dict[str, Any]:
    return {n: h for n, h in typing.get_type_hints(kind).items() if get_origin(h) is not ClassVar}


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _raw_text(node: yaml.Node) -> str:
    """Return the text of the file; a reference, whose value may be a secret, is not resolved."""
    return str(node.value)


def _describe(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
