"""Typed values from YAML nodes, as settings dataclasses declare them.

The declarations are made by `gateway.setting.setting`; its arguments are explained there.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import yaml

from gateway.config.hidden_values import HiddenValues
from gateway.config.hints import address_key, did_you_mean, inner_key, other_end
from gateway.config.named_files import WrittenPath, digest_of, used_path
from gateway.config.nodes import (
    KeyPath,
    SourceLocation,
    describe,
    entries,
    is_braces,
    key_faults,
    location_of,
    raw_text,
)
from gateway.config.numbers import EXAMPLES, may_be, parse_number, parse_with_unit
from gateway.config.references import (
    REFERENCE,
    REFERENCE_HINT,
    ReferenceValues,
    has_reference,
    placeholder_setting,
    placeholder_text,
    placeholder_value,
)
from gateway.errors import ConfigError, NotConnectedError, quoted
from gateway.setting import (
    FileText,
    PathKind,
    default_path,
    fields_by_key,
    is_needed,
    type_hints,
)

T = TypeVar("T")
Facts: TypeAlias = Mapping[str, Any]  # about a setting, as `SettingFacts` lists them

MAX_INTEGER = (1 << 63) - 1  # of every whole number; databases and drivers take 64 bits
MAX_FLOAT = 10**9  # of every fraction and time; the system's timers take no more
NAMED_SECTIONS = (("routes",), ("tests",))  # the rules of a dialect decide about their texts
_SELECTOR = ("selector",)  # a key in whose text no placeholder stands for every word
_TRUE, _FALSE = {"true", "yes", "on"}, {"false", "no", "off"}
# YAML 1.1 reads 12:30 as 750, 010 as 8 and NO as false; where a text may stand, it was meant.
_READ_IN_TWO_WAYS = re.compile(r"[-+]?0[0-9_]+|.*:.*|yes|no|on|off", re.IGNORECASE)
_INVALID: Any = object()  # stands for a value with findings
NO_VALUES: Mapping[str, object] = types.MappingProxyType({})


class ConfigReader:
    """Reader of one file: typed values, their source locations, paths, and all findings.

    Mutable: collects locations, paths and findings.
    """

    def __init__(self, path: str, values: ReferenceValues, hidden: HiddenValues) -> None:
        self.path = path
        self.hidden = hidden
        self._values = values
        self.findings: list[ConfigError] = []
        self.locations: dict[KeyPath, SourceLocation] = {}
        self.paths: dict[KeyPath, WrittenPath] = {}
        self.placeholders: set[KeyPath] = set()  # keys whose value has one
        self.not_found: set[KeyPath] = set()  # of secrets whose variable or file is absent here
        self._failed: set[KeyPath] = set()  # keys whose value has findings
        self._reported: set[KeyPath] = set()
        self._unknown: set[KeyPath] = set()  # those whose value is not known in any part
        self._readers: dict[Any, Any] = {str: self._text, bool: self._bool}
        self._readers |= {kind: partial(self._number, kind=kind) for kind in (int, float)}

    def read(
        self,
        node: yaml.Node,
        kind: type[T],
        at: KeyPath,
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

    def entries(
        self, node: yaml.Node, at: KeyPath, expected: str = "", hint: str = ""
    ) -> list[tuple[yaml.ScalarNode, yaml.Node]] | None:
        """Return the entries of a mapping, and report faults of its keys.

        None for any other value, which is reported with `hint`; `expected` is the text then.
        """
        if not isinstance(node, yaml.MappingNode):
            self.report(at, "type", expected or f"expected a mapping, not {describe(node)}", hint)
            return None
        self.findings += key_faults(self.path, node)
        return entries(node)

    def report(self, at: KeyPath, rule: str, reason: str, hint: str = "") -> None:
        """Add a finding at the value read from `at`, or at the nearest value around it.

        About a value that is not known there is a note only, and about one that has a finding
        nothing more: a legal value stands in for it.
        """
        if any(at[:length] in self._failed for length in range(1, len(at) + 1)):
            return
        self._reported.add(at)
        while at and at not in self.locations:
            at = at[:-1]
        location = self.locations.get(at) or SourceLocation(self.path, 1, 1)
        if at in self._unknown:
            self.findings.append(location.not_checked())
        else:
            self.findings.append(location.error(rule, reason, hint))

    def has_findings(self, at: KeyPath) -> bool:
        """Return whether a finding concerns the value at `at`, or a part of it."""
        return any(each[: len(at)] == at for each in self._reported)

    def silence(self, at: KeyPath) -> None:
        """Report nothing more about the value at `at`: a finding says that it is absent."""
        self._failed.add(at)

    def _value(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Facts) -> Any:  # noqa: PLR0911  # one for each type
        self.locations.setdefault(at, location_of(self.path, node))  # a key's location has priority
        if (legal := self._placeholder(node, kind, at, meta)) is not None:
            return legal
        if get_origin(kind) is Literal:
            kind, meta = str, {"choices": get_args(kind)}
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            return self._optional(node, kind, at, meta)
        if origin is tuple:
            return self._list(node, get_args(kind)[0], at, meta)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(node, get_args(kind)[1], at, meta)
        if is_dataclass(kind):
            return self._dataclass(_mapping_of(node, meta), kind, at)
        value = self._readers[kind](node, at, meta)
        if value is not _INVALID and meta.get("path"):
            return self._path(value, at, meta["path"])
        return value if value is _INVALID else self._in_range(value, node, at, meta)

    def _optional(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Facts) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return None
        inner = [each for each in get_args(kind) if each is not type(None)]
        if at in self.placeholders and placeholder_value(inner[0], meta) is not None:
            return meta.get("default")  # such as no limit
        return self._scalar(node, at) if len(inner) > 1 else self._value(node, inner[0], at, meta)

    def _scalar(self, node: yaml.Node, at: KeyPath) -> Any:
        """Read text, a number or a truth value, as the YAML tag of the node says."""
        if not isinstance(node, yaml.ScalarNode):
            return self._fail(at, "type", f"expected one value, not {describe(node)}")
        kind = {"int": int, "float": float, "bool": bool}.get(node.tag.rpartition(":")[2], str)
        if kind is not str and _READ_IN_TWO_WAYS.fullmatch(node.value):
            reason = f"{raw_text(node)!r} is a number or truth value in one version of YAML only"
            hint = "write a text in quotes, a number in decimal digits, or true or false"
            return self._fail(at, "ambiguous", reason, hint)
        return self._readers[kind](node, at, {})

    def _dataclass(
        self, node: yaml.Node, kind: Any, at: KeyPath, preset: Mapping[str, object] = NO_VALUES
    ) -> Any:
        if (pairs := self.entries(node, at, hint=inner_key(node, kind, at))) is None:
            return _INVALID
        values: dict[str, Any] = {n: v for n, v in preset.items() if v is not None}
        known = {word: field for word, field in fields_by_key(kind).items() if word not in preset}
        hints = type_hints(kind)
        for key, child in pairs:
            if key.value in preset and preset[key.value] is None:
                continue
            at_key = (*at, key.value)
            if (field := known.get(key.value)) is None:
                self.locations[at_key] = location_of(self.path, key)
                hint = (
                    other_end(key.value, known)
                    or did_you_mean(key.value, known)
                    or address_key(key.value, known)
                )
                self.report(at_key, "unknown-field", f"unknown field {key.value!r}", hint)
                continue
            facts = {**field.metadata, "default": field.default}
            value = self._value(child, hints[field.name], at_key, facts)
            if value is _INVALID:
                self._failed.add(at_key)
                value = _stand_in(child, hints[field.name], facts)
            values[field.name] = value
        return self._build(kind, known, values, at)

    def _build(
        self, kind: Any, known: Mapping[str, Field[Any]], values: dict[str, Any], at: KeyPath
    ) -> Any:
        failed = any(value is _INVALID for value in values.values())
        for word, field in known.items():
            either = {field.name, *field.metadata.get("instead", ())}
            if not values.keys() & either and is_needed(field):
                self.report(at, "missing-field", f"missing field {word!r}", field.metadata["doc"])
                failed = True
            elif field.name not in values and (path := default_path(field)) is not None:
                values[field.name] = self._path(path, (*at, word), field.metadata["path"])
        if failed:
            return _INVALID
        try:
            return kind(**values)
        except ValueError as error:
            unknown = (key for key in self._unknown if key[: len(at)] == at)
            return self._fail(next(unknown, at), "value", str(error))

    def _mapping(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Facts) -> Any:
        if (pairs := self.entries(node, at)) is None:
            return _INVALID
        facts = {"reread": meta.get("secret", False)}  # one value may be a secret, others not
        read = {k.value: self._value(v, kind, (*at, k.value), facts) for k, v in pairs}
        return {key: value for key, value in read.items() if value is not _INVALID}

    def _list(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Facts) -> Any:
        if not isinstance(node, yaml.SequenceNode):  # one value stands for a list of one
            value = self._value(node, kind, (*at, 0), meta)
            return _INVALID if value is _INVALID else (value,)
        if not node.value and meta.get("filled"):
            hint = "write an entry" + (
                ", or remove the key" if meta["default"] is not MISSING else ""
            )
            self.report(at, "empty", "the list is empty", hint)
        read = [self._value(c, kind, (*at, i), meta) for i, c in enumerate(node.value)]
        return _INVALID if any(v is _INVALID for v in read) else tuple(read)

    def _text(self, node: yaml.Node, at: KeyPath, meta: Facts) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            hint = "write it in quotes: YAML reads {x} as a mapping" if is_braces(node) else ""
            return self._fail(at, "type", f"expected text, not {describe(node)}", hint)
        if node.tag == "tag:yaml.org,2002:null" and node.value != "":
            return self._fail(at, "type", "expected text, not null", "write it in quotes")
        declared = bool(meta.get("secret"))
        if declared and not has_reference(node.value):
            return self._fail(at, "plain-secret", "the file contains a secret", REFERENCE_HINT)
        if "${" in REFERENCE.sub("", node.value) and at[:1] not in NAMED_SECTIONS:
            return self._fail(at, "bad-reference", "a `${` begins no reference", REFERENCE_HINT)
        text = self._resolve(node.value, at, declared=declared)
        if at in self.placeholders:
            text = placeholder_setting(text, node.value, meta)
            self.hidden.add(node.value, text, at, declared=declared)
        text = self._encodable(text, at) if isinstance(text, str) else text
        if not isinstance(text, str) or not (declared or meta.get("reread")):
            return text
        return self._reread(text, node.value, at, declared=declared)

    def _placeholder(self, node: yaml.Node, kind: Any, at: KeyPath, meta: Facts) -> Any:
        """Note an unknown value; return a placeholder for one that is not text, or None."""
        if not self._values.has_placeholder(node.value):
            return None
        self.placeholders.add(at)
        if not REFERENCE.sub("", node.value) or at[-1:] == _SELECTOR:
            self._unknown.add(at)
        return placeholder_value(kind, meta)

    def _path(self, text: str, at: KeyPath, kind: PathKind) -> Any:
        """Return the path to use, and note both forms of one that is known."""
        if not text:
            hint = "name a file or a folder, or remove the key"
            return self._fail(at, "empty", "the path is empty", hint)
        used = used_path(text, self._values.folder, kind)
        if at not in self.placeholders:
            content = digest_of(Path(used)) if kind == "file" else ""
            self.paths[at] = WrittenPath(text, used, kind, content)
        return used

    def _encodable(self, text: str, at: KeyPath) -> Any:
        """Report a text that no path, host name or protocol can carry."""
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            return self._fail(at, "bad-text", "the text is not UTF-8")
        if "\0" in text and at[:1] not in NAMED_SECTIONS:
            return self._fail(at, "bad-text", "the text has a NUL character")
        return text

    def _resolve(self, text: str, at: KeyPath, *, declared: bool = False) -> Any:
        """Replace the references in `text` by the variables and file contents they name.

        None for a secret that may lack.
        """
        missing: list[re.Match[str]] = []

        def value(found: re.Match[str]) -> str:
            resolved = self._values.find(found)
            if resolved is None:
                missing.append(found)
            self.hidden.add(found[0], resolved or "", at, declared=declared)
            return resolved or ""

        resolved = REFERENCE.sub(value, text)
        if missing:
            if declared:
                self.not_found.add(at)
            if declared and self._values.may_lack:
                return None
            reason, hint = f"nothing found for {missing[0][0]}", self._values.hint(missing[0])
            return self._fail(at, "missing-secret", reason, hint)
        if resolved != text:
            self.hidden.add(text, resolved, at, declared=declared)
        return resolved

    def _reread(self, text: str, written: str, at: KeyPath, *, declared: bool) -> str:
        """Return a text that is read again at each use, if it names a file."""
        names_file = any(found[1] == "file" for found in REFERENCE.finditer(written))
        if not names_file or at in self.placeholders:
            return text
        values, hidden = self._values, self.hidden

        def value(found: re.Match[str]) -> str:
            now = values.find(found)
            if now is None:
                name = ".".join(map(str, at))
                reason = f"{name}: nothing found for {found[0]}; {values.hint(found)}"
                raise NotConnectedError(reason)
            hidden.learn(found[0], now, at, declared=declared)
            return now

        made = FileText(text)
        made.read = lambda: REFERENCE.sub(value, written)
        return made

    def _number(self, node: yaml.Node, at: KeyPath, meta: Facts, kind: type[int | float]) -> Any:
        noun = "a whole number" if kind is int else "a number"
        text, unit = self._text(node, at, {}), meta.get("unit", "")
        if text is _INVALID:
            return _INVALID
        try:
            with_unit = parse_with_unit(text, unit) if unit else None
            value = parse_number(node, text) if with_unit is None else with_unit
            whole = int(value)
        except (ValueError, OverflowError, IndexError):  # an infinity; a tag on an empty text
            wanted = EXAMPLES[unit] if unit and isinstance(node, yaml.ScalarNode) else noun
            return self._fail(at, "type", f"expected {wanted}, not {quoted(raw_text(node))}")
        if abs(whole) > MAX_INTEGER and (kind is int or isinstance(value, int)):
            return self._fail(at, "too-large", f"{quoted(raw_text(node))} has more than 64 bits")
        if kind is float:
            return float(value)
        if whole != value:
            of = f" of {unit}" if unit else ""
            return self._fail(at, "type", f"expected {noun}{of}, not {quoted(raw_text(node))}")
        return whole

    def _bool(self, node: yaml.Node, at: KeyPath, _meta: Facts) -> Any:
        text = self._text(node, at, {})
        if text is _INVALID:
            return _INVALID
        if text.lower() in _TRUE | _FALSE and may_be(node, "bool"):
            return text.lower() in _TRUE
        return self._fail(at, "type", f"expected true or false, not {raw_text(node)!r}")

    def _in_range(self, value: Any, node: yaml.Node, at: KeyPath, meta: Facts) -> Any:
        low, high = meta.get("minimum"), meta.get("maximum")
        if high is None and isinstance(value, float):
            high = MAX_FLOAT
        if (low is not None and value < low) or (high is not None and value > high):
            allowed = f"{'' if low is None else low}..{'' if high is None else high}"
            shown = raw_text(node) if has_reference(node.value) else value
            return self._fail(at, "range", f"{shown} is outside {allowed}")
        choices = meta.get("choices")
        if choices and value not in choices:
            hint = did_you_mean(str(value), map(str, choices))
            return self._fail(at, "choice", f"unknown value {raw_text(node)!r}", hint)
        return value

    def _fail(self, at: KeyPath, rule: str, reason: str, hint: str = "") -> Any:
        self.report(at, rule, reason, hint)
        return _INVALID


def _stand_in(node: yaml.Node, kind: Any, meta: Facts) -> Any:
    """Return a legal value in place of one with findings, so that later checks find the others."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    if kind is str and "choices" not in meta and isinstance(node, yaml.ScalarNode):
        return REFERENCE.sub(placeholder_text, node.value)
    if meta["default"] is not MISSING:
        return meta["default"]
    value = placeholder_value(kind, meta)
    return _INVALID if value is None else value


def _mapping_of(node: yaml.Node, meta: Facts) -> yaml.Node:
    """Return the mapping with one key for which a text stands, where the setting has such a key."""
    if "shorthand" not in meta or not isinstance(node, yaml.ScalarNode):
        return node
    marks = node.start_mark, node.end_mark
    key = yaml.ScalarNode("tag:yaml.org,2002:str", meta["shorthand"], *marks)
    return yaml.MappingNode("tag:yaml.org,2002:map", [(key, node)], *marks)
