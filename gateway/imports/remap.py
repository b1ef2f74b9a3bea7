"""What mosquitto's topic prefixes do, as a source pattern and a template; pure.

mosquitto.conf(5), topic: the pattern is subscribed with the prefix of the side it is taken from,
that prefix is removed from the name, and the other side's is put before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gateway.dialects.base import parse_pattern
from gateway.dialects.mqtt import MQTT
from gateway.errors import SubjectError, TranslationError
from gateway.imports.checks import brace_fault
from gateway.imports.lines import Place

EMPTY = '""'
SHARED = "$share/"
MOST_QOS = 2


class Direction(Enum):
    OUT = "out"
    IN = "in"
    BOTH = "both"


class TopicError(ValueError):
    """mosquitto would refuse the line, or no route says it; the text is the reason."""


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One `topic` line; an empty `pattern` maps one name to one name."""

    place: Place
    pattern: str
    direction: Direction = Direction.OUT
    qos: int = 0
    local: str = ""
    remote: str = ""
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a topic line: what is taken, and what it becomes."""

    pattern: str
    template: str
    exclude: tuple[str, ...] = ()


def parse_topic(value: str, place: Place, above: tuple[str, ...] = ()) -> TopicLine:
    """Read `PATTERN [DIRECTION [QOS [LOCAL-PREFIX [REMOTE-PREFIX]]]]`.

    Raises:
        TopicError: mosquitto refuses it, or reads it as something that was hardly meant.
    """
    words = [word for word in value.split(" ") if word]
    if not words:
        raise TopicError("it has no pattern")
    if len(words) > 5:  # noqa: PLR2004  # the parts of a topic line
        raise TopicError(
            "mosquitto ignores what follows the remote prefix; was a name with blanks meant?"
        )
    pattern, direction, qos, local, remote = [*words, *("", "", "", "", "")][:5]
    line = TopicLine(
        place,
        _filled(pattern),
        _direction(direction),
        _qos(qos),
        _filled(local),
        _filled(remote),
        above,
    )
    _check(line)
    return line


def outward(line: TopicLine) -> Way:
    """From the local broker to the remote one."""
    return _way(line.pattern, line.local, line.remote)


def inward(line: TopicLine) -> Way:
    """From the remote broker to the local one."""
    return _way(line.pattern, line.remote, line.local)


def _way(pattern: str, taken: str, given: str) -> Way:
    number = 0
    levels: list[str] = []
    for level in pattern.split("/"):
        number += level in {"+", "#"}
        levels.append({"+": f"{{{number}}}", "#": f"{{{number}...}}"}.get(level, level))
    parent = taken.removesuffix("/")
    alone = pattern == "#" and parent != ""  # `L/#` takes `L` too, which has no prefix `L/`
    return Way(taken + pattern, given + "/".join(levels), (parent,) if alone else ())


def _filled(word: str) -> str:
    return "" if word == EMPTY else word


def _direction(word: str) -> Direction:
    try:
        return Direction(word.lower() or "out")
    except ValueError:
        raise TopicError(f"the direction {word!r} is none of out, in and both") from None


def _qos(word: str) -> int:
    if word and (not word.isdecimal() or int(word[:4]) > MOST_QOS):
        raise TopicError(f"the QoS {word!r} is none of 0, 1 and 2")
    return int(word or "0")


def _check(line: TopicLine) -> None:
    """Refuse what mosquitto refuses, and what no route can say."""
    if not line.pattern and not (line.local and line.remote):
        raise TopicError('the pattern "" needs a local and a remote prefix')
    for side, prefix in (("local", line.local), ("remote", line.remote)):
        if "+" in prefix or "#" in prefix:
            raise TopicError(f"the {side} prefix {prefix!r} has a wildcard")
        whole = prefix + line.pattern
        if fault := brace_fault(whole):
            raise TopicError(fault)
        try:
            parse_pattern(whole, MQTT)
        except (SubjectError, TranslationError) as error:
            raise TopicError(f"{side} prefix and pattern make no subscription: {error}") from error
        if whole.startswith(SHARED):
            raise TopicError(f"{whole!r} is a shared subscription, and no name can begin with it")
