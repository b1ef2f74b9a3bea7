"""Read YAML without losing where each value was written; it builds no values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import yaml

from gateway.errors import ConfigError, Example

MAX_BYTES = 16 << 20  # a larger file is a mistake, not a configuration
MAX_DEPTH = 64
MAX_NODES = 1_000_000  # counted after aliases are followed, so that no alias bomb goes off

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands; `line` and `column` count from 1."""

    path: str
    line: int
    column: int

    def error(  # the parts of one finding
        self,
        rule: str,
        reason: str,
        hint: str = "",
        severity: str = "error",
        examples: tuple[Example, ...] = (),
    ) -> ConfigError:
        place = (self.path, self.line, self.column)
        return ConfigError(*place, rule, reason, hint, severity, examples)


def place_of(path: str, node: yaml.Node) -> Place:
    mark = node.start_mark
    return Place(path, mark.line + 1, mark.column + 1)


def load_mapping(path: Path) -> yaml.MappingNode:
    """The one mapping of a YAML file, as nodes.

    Raises:
        ConfigError: the file cannot be read, is too large, is not YAML, repeats a key, nests too
            deep or unfolds into too much.
    """
    start = Place(str(path), 1, 1)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise start.error("unreadable", f"cannot read the file: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise start.error("too-large", f"the file is larger than {MAX_BYTES} bytes")
    try:
        _check_depth(str(path), data)
        node = yaml.compose(data, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeError) as error:
        raise _syntax_error(str(path), error) from error
    if node is None:
        raise start.error("empty", "the file is empty", "write endpoints and routes")
    if not isinstance(node, yaml.MappingNode):
        raise start.error("not-a-mapping", "expected a mapping at the top level")
    _check_size(str(path), node)
    return node


def entries(node: yaml.MappingNode) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    """The entries of a mapping with `<<` merges followed; what is written here wins."""
    own: dict[str, tuple[yaml.ScalarNode, yaml.Node]] = {}
    merged: dict[str, tuple[yaml.ScalarNode, yaml.Node]] = {}
    for key, value in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(source, yaml.MappingNode):
                    for pair in entries(source):
                        merged.setdefault(pair[0].value, pair)
        elif isinstance(key, yaml.ScalarNode):
            own.setdefault(key.value, (key, value))
    return [*own.values(), *(pair for name, pair in merged.items() if name not in own)]


def key_faults(path: str, node: yaml.MappingNode) -> Iterator[ConfigError]:
    """A finding for every key that is repeated or is not plain text."""
    seen: dict[str, int] = {}
    for key, _ in node.value:
        place = place_of(path, key)
        if not isinstance(key, yaml.ScalarNode):
            yield place.error("bad-key", "a key must be plain text")
        elif key.value in seen and key.tag != "tag:yaml.org,2002:merge":
            first = seen[key.value]
            yield place.error(
                "duplicate-key", f"{key.value!r} is written twice, first in line {first}"
            )
        else:
            seen[key.value] = place.line


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known word, or lists them when they are few."""
    names = sorted(known)
    if close := get_close_matches(name, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= 12 else ""  # noqa: PLR2004


def _check_depth(path: str, data: bytes) -> None:
    """Stop before a file nests so deep that composing it would exhaust the stack."""
    depth = 0
    for event in yaml.parse(data, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            mark = event.start_mark
            place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path, 1, 1)
            raise place.error("too-large", f"the value nests deeper than {MAX_DEPTH}")


def _check_size(path: str, root: yaml.Node) -> None:
    """Walk the tree as a reader would, aliases unfolded, and stop before it grows too large."""
    waiting = [root]
    count = 0
    while waiting:
        node = waiting.pop()
        count += 1
        if count > MAX_NODES:
            hint = "use fewer aliases"
            raise place_of(path, node).error("too-large", "the value unfolds without end", hint)
        if isinstance(node, yaml.MappingNode):
            waiting += [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _syntax_error(path: str, error: Exception) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path, 1, 1)
        token = "cannot start any token" in str(error.problem)
        hint = "indent with spaces, not tabs; quote what begins with @, ` or %" if token else ""
        return place.error("syntax", f"not YAML: {error.problem or error.context}", hint)
    reason = str(error).splitlines()[0]
    return Place(path, 1, 1).error("syntax", f"not YAML: {reason}")
