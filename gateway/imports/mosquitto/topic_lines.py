"""Parser of the `topic` lines of mosquitto's bridges, and operations on their patterns.

It refuses every line that mosquitto refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import count, zip_longest
from string import ascii_lowercase

from gateway.dialects.base import parse_pattern
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.route_checks import fault_of, find_brace_fault
from gateway.imports.source_lines import OmittedLine, SourceLine

EMPTY = '""'
SHARED = "$share/"
MAX_SLASHES = 200  # in a name or pattern (mosquitto 2.0, TOPIC_HIERARCHY_LIMIT)


class Direction(Enum):
    OUT = "out"
    IN = "in"
    BOTH = "both"


class TopicError(ValueError):
    """A line that mosquitto refuses, or that no route can express; the text is the reason."""


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One `topic` line; an empty `pattern` maps one name to one name.

    `name`: the one name that all its messages get on the other side (NanoMQ); without prefixes.
    """

    location: SourceLine
    pattern: str
    direction: Direction = Direction.OUT
    qos: int = 0
    local: str = ""
    remote: str = ""
    comments: tuple[str, ...] = ()
    name: str = ""

    def omitted(self, reason: str) -> OmittedLine:
        return OmittedLine(self.location, f"the topic {self.pattern!r}", reason)


def parse_topic(value: str, location: SourceLine, comments: tuple[str, ...] = ()) -> TopicLine:
    """Read `PATTERN [DIRECTION [QOS [LOCAL-PREFIX [REMOTE-PREFIX]]]]`.

    Raises:
        TopicError: mosquitto refuses it, or ignores a part of it.
    """
    words = [word for word in value.split(" ") if word]
    comment = next((at for at, word in enumerate(words) if at > 1 and word[0] == "#"), len(words))
    words = words[:comment]  # mosquitto 2.0 runs with a comment behind the direction
    if not words:
        raise TopicError("it has no pattern")
    if len(words) > 5:  # the parts of a topic line
        raise TopicError(
            "mosquitto ignores what follows the remote prefix; was a name with blanks meant?"
        )
    pattern, direction, qos, local, remote = [*words, *("", "", "", "", "")][:5]
    pattern, local, remote = ("" if each == EMPTY else each for each in (pattern, local, remote))
    line = TopicLine(location, pattern, _direction(direction), _qos(qos), local, remote, comments)
    check_topic(line)
    return line


def with_captures(stem: str) -> str:
    """Return a pattern with captures for its wildcards: `a/+/#` as `a/{a}/{rest...}`."""
    names = map(_letters, count())

    def capture(level: str) -> str:
        if level == "+":
            return f"{{{next(names)}}}"
        return "{rest...}" if level == "#" else level

    return "/".join(map(capture, stem.split("/")))


def intersect(one: str, other: str) -> str | None:
    """Return the intersection of two patterns without prefixes; None when it is empty."""
    ones, others = one.split("/"), other.split("/")
    levels: list[str] = []
    for at, (a, b) in enumerate(zip_longest(ones, others)):
        if a == "#":
            return "/".join([*levels, *others[at:]])
        if b == "#":
            return "/".join([*levels, *ones[at:]])
        if a is None or b is None or (a != b and "+" not in {a, b}):
            return None
        levels.append(b if a == "+" else a)
    return "/".join(levels)


def _letters(number: int) -> str:
    """Return the name of capture `number`: a to z, aa, ab, ..."""
    more, last = divmod(number, len(ascii_lowercase))
    return (_letters(more - 1) if more else "") + ascii_lowercase[last]


def _direction(word: str) -> Direction:
    try:
        return Direction(word.lower() or "out")
    except ValueError:
        raise TopicError(f"the direction {word!r} is none of out, in and both") from None


def _qos(word: str) -> int:
    if word not in ("", "0", "1", "2"):
        raise TopicError(f"the QoS {word!r} is none of 0, 1 and 2")
    return int(word or "0")


def check_topic(line: TopicLine) -> None:
    """Refuse a line that mosquitto refuses, or that no route can express.

    Raises:
        TopicError: it is such a line.
    """
    if not line.pattern and not (line.local and line.remote):
        raise TopicError('the pattern "" needs a local and a remote prefix')
    for side, prefix in (("local", line.local), ("remote", line.remote)):
        if "+" in prefix or "#" in prefix:
            raise TopicError(f"the {side} prefix {prefix!r} has a wildcard")
        whole = prefix + line.pattern
        if whole.count("/") > MAX_SLASHES:
            raise TopicError(
                f"{side} prefix and pattern have more than {MAX_SLASHES} '/', and mosquitto takes"
                " no such name"
            )
        if fault := find_brace_fault(whole):
            raise TopicError(fault)
        if fault := fault_of(parse_pattern, whole, MQTT):
            raise TopicError(f"{side} prefix and pattern are not a legal subscription: {fault}")
        if whole.startswith(SHARED):
            raise TopicError(f"{whole!r} is a shared subscription, and no name can begin with it")
