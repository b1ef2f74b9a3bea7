"""Numbers of settings, with and without a unit, as YAML reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import yaml

from gateway.config.references import has_reference
from gateway.setting import SettingUnit

MAX_DIGITS = 400  # characters of a number; the largest float has 309
_YAML = yaml.constructor.SafeConstructor()


def may_be(node: yaml.Node, *tags: str) -> bool:
    """Return whether YAML reads `node` as one of `tags`, or it contains a reference."""
    return node.tag.rpartition(":")[2] in tags or has_reference(node.value)


def parse_number(node: yaml.Node, text: str) -> int | float:
    """Parse a number as YAML does; `text` is the value of `node` with references resolved.

    Raises:
        ValueError: it is not a number.
        IndexError: it has the tag of a number and no digits.
    """
    if len(text) > MAX_DIGITS:
        raise ValueError(text[:MAX_DIGITS])
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":int"):
        return int(_YAML.construct_yaml_int(node))
    if not may_be(node, "float"):
        raise ValueError(text)
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":float"):
        return float(_YAML.construct_yaml_float(node))
    return float(text) if set(text) & set(".eE") else int(text)


MAX_WITH_UNIT: Final = 32  # characters of a number with its unit
SIZES: Final[Mapping[str, int]] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}  # in bytes
_SECONDS: Final = {"ms": "1/1000", "s": "1", "m": "60", "min": "60", "h": "3600", "d": "86400"}
DURATIONS: Final = {name: Fraction(text) for name, text in _SECONDS.items()}
UNITS: Final[Mapping[SettingUnit, Mapping[str, Fraction]]] = {
    "bytes": {name: Fraction(size) for name, size in SIZES.items()},
    "seconds": DURATIONS,
    "days": {name: seconds / 86_400 for name, seconds in DURATIONS.items()},
    "messages a minute": {"/minute": Fraction(1)},
}
EXAMPLES: Final[Mapping[SettingUnit, str]] = {
    "bytes": "a size such as 64MiB",
    "seconds": "a duration such as 1.5s",
    "days": "a duration such as 7d",
    "messages a minute": "a rate such as 600/minute",
}


def unit_pattern(unit: SettingUnit) -> str:
    """Return a regular expression of the numbers with a unit that stand for a number of `unit`."""
    return rf"^([0-9]+(?:\.[0-9]+)?) ?({'|'.join(UNITS[unit])})$"


def parse_with_unit(text: str, unit: SettingUnit) -> Fraction | None:
    """Return the number of `unit` that a text such as `64MiB` stands for; None for another text."""
    found = re.fullmatch(unit_pattern(unit), text) if len(text) <= MAX_WITH_UNIT else None
    return None if found is None else Fraction(found[1]) * UNITS[unit][found[2]]
