"""The environment variables that a new mapping needs before it can be checked and run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import yaml

from gateway.config.values.reference_values import REFERENCE

_LOADER: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def unset_variables(text: str) -> str:
    """Return the variables that a YAML text refers to, and that are not set, such as "A and B".

    Comments do not count. The result is empty when there is none.
    """
    *first, last = sorted(set(_variables(text)) - os.environ.keys()) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _variables(text: str) -> Iterator[str]:
    for token in yaml.scan(text, Loader=_LOADER):
        if isinstance(token, yaml.ScalarToken):
            for source, name in REFERENCE.findall(token.value):
                if source == "env":
                    yield name
