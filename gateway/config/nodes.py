"""YAML nodes of a configuration file, with the source location of each value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from gateway.errors import ConfigError, FindingExample, first_line, quoted
from gateway.untyped import Untyped

KeyPath: TypeAlias = tuple[str | int, ...]  # keys and list positions from the root to a value

MAX_BYTES = 16 << 20  # a larger file is a mistake, not a configuration
MAX_DEPTH = 64
_CHUNK = 1 << 16  # bytes of one read
MAX_NODES = 1_000_000  # counted with aliases expanded, against alias bombs

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_KNOWN_TAGS = {
    _TAG + each
    for each in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Location of a value in a file; `line` and `column` count from 1."""

    path: str
    line: int
    column: int

    def error(
        self,
        rule: str,
        reason: str,
        hint: str = "",
        severity: str = "error",
        examples: tuple[FindingExample, ...] = (),
    ) -> ConfigError:
        """Return a finding at this location; `severity` may be "warning" or "note"."""
        location = (self.path, self.line, self.column)
        return ConfigError(*location, rule, reason, hint, severity, examples)

    def not_checked(self) -> ConfigError:
        """Return a note in place of a finding about a value that only references give."""
        reason = "not checked: the value is not known without secrets"
        return self.error("unknown-value", reason, "", "note")


def location_of(path: str, node: yaml.Node) -> SourceLocation:
    return _at_mark(path, node.start_mark)


def load_mapping(path: Path) -> yaml.MappingNode:
    """Read the mapping at the top level of a YAML file.

    Raises:
        ConfigError: the file cannot be read, is too large, is not a YAML mapping, nests too deep
            or has too many values.
    """
    start = SourceLocation(str(path), 1, 1)
    try:
        with path.open("rb") as file:
            data = bytearray()  # `read(MAX_BYTES + 1)` would reserve that much for each file
            while len(data) <= MAX_BYTES and (part := file.read(_CHUNK)):
                data += part
    except OSError as error:
        raise start.error("unreadable", f"cannot read the file: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise start.error("too-large", f"the file is larger than {MAX_BYTES} bytes")
    try:
        content = bytes(data)
        _check_depth(str(path), content)
        node = yaml.compose(content, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeError) as error:
        raise _syntax_error(str(path), error) from error
    if node is None:
        raise start.error("empty", "the file is empty", "write endpoints and routes")
    if not isinstance(node, yaml.MappingNode):
        raise start.error("not-a-mapping", "expected a mapping at the top level")
    _check_size(str(path), node)
    return node


def entries(node: yaml.MappingNode) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    """Return the entries of a mapping, `<<` merges included; its own keys take precedence."""
    own: dict[str, tuple[yaml.ScalarNode, yaml.Node]] = {}
    merged: dict[str, tuple[yaml.ScalarNode, yaml.Node]] = {}
    for key, value in node.value:
        if key.tag == _MERGE:
            for source in _merge_sources(value):
                if isinstance(source, yaml.MappingNode):
                    for pair in entries(source):
                        merged.setdefault(pair[0].value, pair)
        elif isinstance(key, yaml.ScalarNode):
            own.setdefault(key.value, (key, value))
    return [*own.values(), *(pair for name, pair in merged.items() if name not in own)]


def _merge_sources(value: yaml.Node) -> list[yaml.Node]:
    """Return the mappings that `<<` merges, and what stands in their place."""
    return value.value if isinstance(value, yaml.SequenceNode) else [value]


def key_faults(path: str, node: yaml.MappingNode) -> Iterator[ConfigError]:
    """Yield a finding for each key that is repeated or no scalar, and for each other merge."""
    seen: dict[str, int] = {}
    for key, value in node.value:
        location = location_of(path, key)
        if not isinstance(key, yaml.ScalarNode):
            yield location.error("bad-key", "a key must be plain text")
        elif key.tag == _MERGE:
            for source in _merge_sources(value):
                if isinstance(source, yaml.MappingNode):
                    yield from key_faults(path, source)
                else:
                    reason = "only mappings can be merged"
                    hint = "write an alias, such as `<<: *name`"
                    yield location_of(path, source).error("bad-merge", reason, hint)
        elif key.value in seen:
            reason = f"{key.value!r} is written twice, first in line {seen[key.value]}"
            yield location.error("duplicate-key", reason)
        else:
            seen[key.value] = location.line


def tag_faults(path: str, root: yaml.Node) -> Iterator[ConfigError]:
    """Yield a finding for each value with a tag such as `!secret`, which nothing here obeys."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        pending += _children(node)
        if node.tag not in _KNOWN_TAGS:
            tag = node.tag.replace(_TAG, "!!")
            hint = "write the value itself, or ${env:NAME} or ${file:/path}"
            yield location_of(path, node).error("unknown-tag", f"unknown tag {quoted(tag)}", hint)


def raw_text(node: yaml.Node) -> str:
    """Return the text of the file; a reference, whose value may be a secret, is not resolved."""
    return str(node.value)


def is_braces(node: yaml.Node) -> bool:
    """Return whether `node` is a capture without quotes, such as {x}."""
    return isinstance(node, yaml.MappingNode) and all(
        isinstance(value, yaml.ScalarNode) and value.value == "" for _, value in node.value
    )


def describe(node: yaml.Node) -> str:
    """Return the value in words, for a finding."""
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"


def _check_depth(path: str, data: bytes) -> None:
    """Raise before composing deeply nested values would exhaust the stack."""
    depth = 0
    for event in yaml.parse(data, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            reason = f"the value nests deeper than {MAX_DEPTH}"
            raise _at_mark(path, event.start_mark).error("too-large", reason)


def _check_size(path: str, root: yaml.Node) -> None:
    """Raise when the tree has too many values, counted with aliases expanded.

    Each node is counted once, whatever the number of its aliases.
    """
    sizes: dict[int, int] = {}  # values of a node, by its id()
    opened: set[int] = set()
    pending = [root]
    while pending:
        node = pending[-1]
        children = _children(node)
        uncounted = [child for child in children if id(child) not in sizes]
        if not uncounted:
            pending.pop()
            size = sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            if size > MAX_NODES:
                reason = f"the file has more than {MAX_NODES} values with its aliases expanded"
                raise location_of(path, node).error("too-large", reason, "use fewer aliases")
        elif id(node) in opened:
            reason = "an alias in this value stands for the value itself"
            raise location_of(path, node).error("too-large", reason, "write the value in full")
        else:
            opened.add(id(node))
            pending += uncounted


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _syntax_error(path: str, error: Exception) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError):
        location = _at_mark(path, error.problem_mark or error.context_mark)
        token = "cannot start any token" in str(error.problem)
        hint = "indent with spaces, not tabs; quote what begins with @, ` or %" if token else ""
        return location.error("syntax", f"not YAML: {error.problem or error.context}", hint)
    return SourceLocation(path, 1, 1).error("syntax", f"not YAML: {first_line(error)}")


def _at_mark(path: str, mark: Untyped) -> SourceLocation:
    if mark is None:
        return SourceLocation(path, 1, 1)
    return SourceLocation(path, mark.line + 1, mark.column + 1)  # it counts from 0
