"""A mapping in the making, and its text: endpoints, routes and where each came from.

It writes no file, and says nothing that was not given to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gateway.imports.lines import Fate, Left, Place
from gateway.imports.yaml_text import Value, comment, scalar

LONGEST = 64  # characters of a name in a configuration
BACK = ".back"  # behind the name of a route in both directions, for its way back
_NOT_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_WILDCARDS = {"*": "each", "+": "each", ">": "all", "#": "all"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of an endpoint, with a comment above it when there is something to say."""

    key: str
    value: Value
    note: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint to write."""

    name: str
    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """One target of a route."""

    endpoint: str
    template: str
    notes: tuple[str, ...] = ()
    lossy: bool = False  # several names become one here, as they do today


@dataclass(frozen=True, slots=True)
class Rule:
    """A route to write; `place` is the line that asked for it."""

    name: str
    place: Place
    endpoint: str
    pattern: str
    sends: tuple[Send, ...]
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    selector: str = ""
    both: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """All that an import found."""

    command: str
    files: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]
    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()  # at the top
    remarks: tuple[str, ...] = ()  # after the routes
    left: tuple[Left, ...] = field(default=())


class Names:
    """Names that a configuration takes; mutable, because no name is given twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, *parts: str) -> str:
        """A legal name that reads like `parts`, unlike every name before it."""
        wanted = _legal("-".join(parts))
        if wanted.endswith(BACK):  # the configuration calls the way back of a route so
            wanted = f"{wanted.removesuffix(BACK)}-back"
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            tail = f"-{number}"
            name = wanted[: LONGEST - len(tail)] + tail
        self._taken.add(name)
        return name


def render(document: Document) -> str:
    """The mapping file's text, the same for the same document."""
    return "\n".join([*_head(document), *_endpoints(document), *_rules(document), *_tail(document)])


def _legal(text: str) -> str:
    spelled = "".join(_WILDCARDS.get(char, char) for char in text)
    return _NOT_NAME.sub("-", spelled).strip("-._")[:LONGEST] or "route"


def _head(document: Document) -> Iterator[str]:
    files = ", ".join(document.files)
    yield from comment(f"Made by `gateway import {document.command}` from {files}.")
    lost = sum(each.fate is Fate.LOST for each in document.left)
    stays = len(document.left) - lost
    if document.left:
        said = f"{lost} not carried over, {stays} for the broker alone"
        yield from comment(f"Read the list at the end before this runs: {said}.")
    for note in document.notes:
        yield "#"
        yield from comment(note)
    yield ""


def _endpoints(document: Document) -> Iterator[str]:
    if not document.endpoints:
        return
    yield "endpoints:"
    for endpoint in document.endpoints:
        yield from _comments(endpoint.notes, 2)
        yield f"  {endpoint.name}:"
        for setting in endpoint.settings:
            yield from comment(setting.note, 4)
            yield from _setting(setting)
    yield ""


def _setting(setting: Setting) -> Iterator[str]:
    if isinstance(setting.value, Mapping) and setting.value:
        yield f"    {setting.key}:"
        for key, value in setting.value.items():
            yield f"      {key}: {scalar(value)}"
    else:
        yield f"    {setting.key}: {scalar(setting.value)}"


def _rules(document: Document) -> Iterator[str]:
    if not document.rules:
        yield from comment("No line became a route; a configuration needs one at least.")
        return
    yield "routes:"
    for number, rule in enumerate(document.rules):
        if number:
            yield ""
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield from _comments(rule.notes, 2)
    yield f"  {rule.name}:"
    source: dict[str, Value] = {"endpoint": rule.endpoint, "pattern": rule.pattern}
    if rule.exclude:
        source["exclude"] = rule.exclude
    if rule.selector:
        source["selector"] = rule.selector
    yield f"    from: {scalar(source)}"
    yield "    to:"
    for send in rule.sends:
        yield from _comments(send.notes, 6)
        target: dict[str, Value] = {"endpoint": send.endpoint, "template": send.template}
        if send.lossy:
            target["lossy"] = True
        yield f"      - {scalar(target)}"
    if rule.both:
        yield "    direction: both"


def _tail(document: Document) -> Iterator[str]:
    if document.remarks:
        yield ""
        yield from _comments(document.remarks, 0)
    for fate, title in ((Fate.LOST, "Not carried over:"), (Fate.STAYS, "Stays where it is:")):
        found = [each for each in document.left if each.fate is fate]
        if found:
            yield ""
            yield f"# {title}"
            for each in found:
                yield from comment(f"- {each.place}: {each.what}; {each.reason}")
    yield ""


def _comments(notes: Iterable[str], indent: int) -> Iterator[str]:
    for note in notes:
        yield from comment(note, indent)
