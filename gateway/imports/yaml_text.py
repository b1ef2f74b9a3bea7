"""YAML text for imported values, and comment lines for imported comments."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import yaml

from gateway.terminal import visible

Value: TypeAlias = "str | int | bool | Sequence[str] | Mapping[str, Value]"

MAX_WIDTH = 96  # characters of a comment line
MAX_COMMENT_LINES = 8  # of one imported comment
REFERENCE = "${"  # the loader replaces references; imported text must not contain one

_SECRET = re.compile(r"pass|pwd|secret|psk|token|credential|api.?key", re.IGNORECASE)


class _Dumper(yaml.SafeDumper):
    """PyYAML's emitter with double quotes in place of single quotes."""

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def to_yaml(value: Value) -> str:
    """Return `value` as one line of YAML in flow style; text that needs it stands in quotes."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
    )
    return text.removesuffix("...\n").rstrip("\n")


def comment_lines(text: str, indent: int = 0) -> list[str]:
    """Return `text` as comment lines; unprintable characters are written as escapes."""
    width, shown = MAX_WIDTH - indent - 2, visible(text)
    lines = [shown.rstrip()] if shown.strip() else []
    if len(shown) > width:
        lines = textwrap.wrap(shown, width, break_on_hyphens=False, break_long_words=False)
    return [f"{' ' * indent}# {line}" for line in lines]


def quote_comments(comments: Iterable[str], secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """Return imported comment lines in quotes, without lines that mention or contain a secret."""
    lines = [line for line in comments if any(map(str.isalnum, line))]
    known = [secret for secret in secrets if secret]
    safe = [
        line for line in lines if not _SECRET.search(line) and not any(s in line for s in known)
    ]
    return tuple(f'"{line}"' for line in safe[-MAX_COMMENT_LINES:])
