"""Hints: what a finding proposes in place of a word that it does not know."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

import yaml

from gateway.config.nodes import KeyPath
from gateway.setting import fields_by_key, type_hints

MAX_LISTED: Final = 12  # known words, when none is close
ADDRESS_KEYS: Final = ("url", "urls", "host", "port", "address")  # by kind of endpoint


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the closest known word, or with all of them when they are few."""
    names = sorted(known)
    if close := get_close_matches(name, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= MAX_LISTED else ""


def inner_key(node: yaml.Node, section: Hashable, at: KeyPath) -> str:
    """Return a hint at the key that a number, or the name of a switch, in place of it may mean."""
    if not isinstance(node, yaml.ScalarNode) or not at:
        return ""
    known, hints = fields_by_key(section), type_hints(section)
    numbers = [word for word, field in known.items() if field.metadata.get("unit")]
    if node.value in known and hints[known[node.value].name] is bool:
        return f"write `{at[-1]}: {{{node.value}: true}}`"
    if len(numbers) == 1 and node.value[:1].isdigit():
        return f"write `{at[-1]}: {{{numbers[0]}: {node.value}}}`"
    return ""


def other_end(word: str, known: Mapping[str, object]) -> str:
    """Return a hint when `word` names the names of the other end of a route."""
    if word == "template" and "pattern" in known:
        return "a `template` belongs to `to`; write the `pattern` of the source here"
    if word == "pattern" and "template" in known:
        return "a `pattern` belongs to `from`; write the `template` of the target here"
    return ""


def address_key(word: str, known: Mapping[str, object]) -> str:
    """Return a hint at the key for the address, when `word` is that of another kind."""
    found = next((each for each in ADDRESS_KEYS if each in known), "")
    return f"did you mean {found!r}?" if found and word in ADDRESS_KEYS else ""
