"""Values of settings: references, paths, numbers, and placeholders for absent secrets.

`${env:NAME}` refers to a variable, `${file:PATH}` to the content of a file. A placeholder is legal
where its reference stands, and the same at each place. It is never printed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from glob import escape
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin
from zlib import crc32

import yaml

from gateway.archive.durable import read_regular
from gateway.setting import PathKind, SettingUnit

MAX_SECRET: Final = 1 << 20  # bytes; a larger or endless file is not a secret
REFERENCE: Final = re.compile(r"\$\{(env|file):([^}]*)\}")


class ReferenceValues:
    """Variables of an environment, and files relative to `folder`; or placeholders for all."""

    def __init__(
        self, environment: Mapping[str, str] | None, folder: Path, *, without_secrets: bool
    ) -> None:
        self.without_secrets = without_secrets
        self._environment = os.environ if environment is None else environment
        self._folder = folder

    def find(self, found: re.Match[str]) -> str | None:
        """Return the value of a match of `REFERENCE`, or None when there is none."""
        if self.without_secrets:
            return placeholder_text(found)
        source, name = found.groups()
        return self._environment.get(name) if source == "env" else self._content(name)

    def hint(self, found: re.Match[str]) -> str:
        """Return what to do about a reference without a value."""
        if found[1] == "env":
            return "set the variable before the gateway starts"
        return f"create or mount the file {self._folder / found[2]} before the gateway starts"

    def _content(self, name: str) -> str | None:
        try:
            with (self._folder / name).open("rb") as file:
                data = file.read(MAX_SECRET + 1)
            return None if len(data) > MAX_SECRET else data.decode().rstrip("\r\n")
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """Path of a setting as the file writes it, and as the process uses it."""

    written: str
    used: str
    kind: PathKind
    content: str = ""  # digest of a file, so that a reload notices another one at its path


def used_path(text: str, folder: Path, kind: PathKind) -> str:
    """Return a path relative to `folder`; a URL and an empty text as they are."""
    if not text or "://" in text:
        return text
    return str(Path(escape(str(folder)) if kind == "jars" else folder) / text)


def digest_of(path: Path) -> str:
    """Return the digest of a regular file; an empty text for one that cannot be read."""
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except (OSError, ValueError):  # ValueError: no path has this character
        return ""


MAX_DIGITS = 400  # characters of a number; the largest float has 309
_YAML = yaml.constructor.SafeConstructor()


def may_be(node: yaml.Node, *tags: str) -> bool:
    """Return whether YAML reads `node` as one of `tags`, or it contains a reference."""
    return node.tag.rpartition(":")[2] in tags or REFERENCE.search(node.value) is not None


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
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip  # in bytes
DURATIONS: Final[Mapping[str, Fraction]] = {
    name: Fraction(seconds)
    for name, seconds in (
        ("ms", "1/1000"), ("s", "1"), ("m", "60"), ("min", "60"), ("h", "3600"), ("d", "86400"),
    )
}  # fmt: skip  # in seconds
UNITS: Final[Mapping[SettingUnit, Mapping[str, Fraction]]] = {
    "bytes": {name: Fraction(size) for name, size in SIZES.items()},
    "seconds": DURATIONS,
    "days": {name: seconds / 86_400 for name, seconds in DURATIONS.items()},
}
EXAMPLES: Final[Mapping[SettingUnit, str]] = {
    "bytes": "a size such as 64MiB", "seconds": "a duration such as 1.5s",
    "days": "a duration such as 7d",
}  # fmt: skip


def unit_pattern(unit: SettingUnit) -> str:
    """Return a regular expression of the numbers with a unit that stand for a number of `unit`."""
    return rf"^([0-9]+(?:\.[0-9]+)?) ?({'|'.join(UNITS[unit])})$"


def parse_with_unit(text: str, unit: SettingUnit) -> Fraction | None:
    """Return the number of `unit` that a text such as `64MiB` stands for; None for another text."""
    found = re.fullmatch(unit_pattern(unit), text) if len(text) <= MAX_WITH_UNIT else None
    return None if found is None else Fraction(found[1]) * UNITS[unit][found[2]]


MAX_WORD: Final = 16  # characters of a reference's name in its placeholder
SECRET_LENGTH: Final = 32  # characters
FIRST_PORT: Final = 1_024
PORTS: Final = 60_000
_BEFORE_PORT: Final = re.compile(r"://[^/]*:$")


def placeholder_text(found: re.Match[str]) -> str:
    """Return a text in place of a reference, or the digits of a port behind a host of a URL.

    The text is legal as a host name, as a name and as a level of every system. It is as short as
    real values are, because the names of a route have limits.
    """
    number = crc32(found[0].encode("utf-8", "surrogatepass"))
    if _BEFORE_PORT.search(found.string[: found.start()]):
        return str(FIRST_PORT + number % PORTS)
    word = re.sub(r"[^A-Za-z0-9]+", "-", found[2]).strip("-")[:MAX_WORD]
    return f"{word}-{number:08x}"


def placeholder_setting(text: str, meta: Mapping[str, Any], *, whole: bool) -> str:
    """Return a text with placeholders as a legal value of its setting.

    A secret is long enough. A `whole` value is a URL when the default of the setting is one: a URL
    with TLS, about which there are fewer findings.
    """
    if meta.get("secret"):
        return text.ljust(SECRET_LENGTH, "x")
    default = meta.get("default") if whole else None
    first = default[0] if isinstance(default, tuple) and default else default
    scheme, mark, _ = str(first).partition("://")
    return f"{scheme}s{mark}{text}:{FIRST_PORT}" if mark else text


def placeholder_value(kind: Any, meta: Mapping[str, Any]) -> Any:  # noqa: ANN401  # of the type `kind`
    """Return a legal value of a setting that is not free text; None when it is."""
    if get_origin(kind) not in {None, Literal}:
        return None  # a list or an optional value: its inner type decides
    default = meta.get("default")
    choices = get_args(kind) if get_origin(kind) is Literal else meta.get("choices", ())
    if choices:
        return default if default in choices else choices[0]
    if kind is bool:
        return default is True
    if kind not in {int, float}:
        return None
    if isinstance(default, int | float):
        return default
    return kind(min(max(meta.get("minimum", 1), 1), meta.get("maximum", 1)))
