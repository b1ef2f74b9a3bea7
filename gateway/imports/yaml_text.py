"""Values and comments as YAML text that reads back as it was; it lays nothing out."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "str | int | bool | Sequence[str] | Mapping[str, Value]"

WIDTH = 96  # characters of a comment line
MOST_SAID = 8  # lines of one foreign comment that are repeated
REFERENCE = "${"  # what the loader replaces; a foreign text must not say it

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NO_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_SECRET = re.compile(r"pass|pwd|secret|psk|token|credential|api.?key", re.IGNORECASE)
_BACKSLASH = {'"': '\\"', "\\": "\\\\"}
BYTE, BMP = 0xFF, 0xFFFF


def scalar(value: Value) -> str:
    """`value` in flow style; text that is not a plain word stands in double quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        plain = _WORD.fullmatch(value) and value.lower() not in _NO_TEXT
        return value if plain else f'"{_escaped(value, _BACKSLASH)}"'
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {scalar(each)}' for key, each in value.items())}}}"
    return f"[{', '.join(map(scalar, value))}]"


def comment(text: str, indent: int = 0) -> list[str]:
    """`text` as comment lines; what cannot be printed is spelled by its code point."""
    room = WIDTH - indent - 2
    wrapped = textwrap.wrap(
        _escaped(text, {}), room, break_on_hyphens=False, break_long_words=False
    )
    return [f"{' ' * indent}# {line}" for line in wrapped]


def prose(above: Iterable[str], secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """What a foreign comment says, without lines that speak of secrets or hold one."""
    said = [line for line in above if any(map(str.isalnum, line))]
    known = [secret for secret in secrets if secret]
    safe = [line for line in said if not _SECRET.search(line) and not any(s in line for s in known)]
    return tuple(f'"{line}"' for line in safe[-MOST_SAID:])


def _escaped(text: str, quoted: Mapping[str, str]) -> str:
    return "".join(quoted.get(char) or _printable(char) for char in text)


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code <= BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= BMP else f"\\U{code:08x}"
