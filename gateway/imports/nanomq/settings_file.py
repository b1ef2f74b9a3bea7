"""Files of NanoMQ and EMQX 4: every setting with its path and its line.

Two forms. Blocks: HOCON, with nested braces, lists, quoted text and comments of `#` and `//`.
Lines: `bridge.mqtt.NAME.KEY = VALUE` of EMQX 4 and NanoMQ up to 0.18, where the value goes to the
end of the line and may have `#`. An entry of a list has its number as a level of its path.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from gateway.errors import GatewayError
from gateway.imports.source_lines import SourceLine

MAX_DEPTH: Final = 32
_KEY: Final = re.compile(r"[\w.$-]+")
_IS_LINES: Final = re.compile(r"^[ \t]*(?:aws\.)?bridge\.mqtt\.[\w.-]+\s*=", re.MULTILINE)
_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t\r]+|(?:\#|//)[^\n]*)|(?P<line>[\n,;])|(?P<mark>[{}\[\]=:])"
    r'|"""(?P<long>.*?)"""|"(?P<text>(?:[^"\\\n]|\\.)*)"|(?P<bare>(?:(?!//)[^\s{}\[\]=:,\#"])+)',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of the file; `path` has the names of the blocks around it, and its own."""

    location: SourceLine
    path: tuple[str, ...]
    value: str


def read_settings(file: str, data: bytes) -> list[Setting]:
    """Return all settings in the order of the file.

    Raises:
        GatewayError: the file is not UTF-8, or a brace or a quote is not closed.
    """
    try:
        text = data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise GatewayError(f"{file}: the file is not UTF-8; save it as UTF-8") from error
    return list(_lines(file, text) if _IS_LINES.search(text) else _Blocks(file, text).settings())


def _lines(file: str, text: str) -> Iterator[Setting]:
    for number, line in enumerate(text.split("\n"), 1):
        key, _, value = (each.strip() for each in line.partition("="))
        if _KEY.fullmatch(key):
            text = value.removeprefix('"').removesuffix('"')
            yield Setting(SourceLine(file, number), tuple(key.split(".")), text)


class _Blocks:
    """Reader of the form with blocks. Mutable: moves through the tokens, and knows the next one."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._tokens = self._tokens_of(text)
        self._next = next(self._tokens)

    def settings(self) -> Iterator[Setting]:
        """Yield all settings.

        Raises:
            GatewayError: the file is not of this form.
        """
        self._skip_lines()
        if self._next[:2] == ("mark", "{"):  # as in JSON, braces around the file
            self._take()
            yield from self._block((), end="}")
        else:
            yield from self._block((), end="")

    def _tokens_of(self, text: str) -> Iterator[tuple[str, str, int]]:
        at, line = 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._fault(line, f"a quote is not closed, or {text[at]!r} is not expected")
            kind = found.lastgroup or ""
            if kind != "blank":
                yield kind, found[kind], line
            line += found[0].count("\n")
            at = found.end()
        yield "end", "", line

    def _block(self, path: tuple[str, ...], end: str) -> Iterator[Setting]:
        """Yield the settings up to `end`, a closing brace or the end of the file."""
        self._check_depth(path)
        while True:
            key, line = self._key(end)
            if not key:
                return
            inner = (*path, *key)
            self._skip_lines()
            if not self._begins_value():
                raise self._fault(line, f"{'.'.join(inner)!r} has no value")
            yield from self._value(inner)

    def _key(self, end: str) -> tuple[tuple[str, ...], int]:
        """Return the next key, with the mark behind it taken; empty at the end of the block."""
        self._skip_lines()
        kind, text, line = self._take()
        if (kind == "end" and not end) or (kind, text) == ("mark", end):
            return (), line
        if kind not in {"text", "bare"}:
            reason = "a block is not closed" if kind == "end" else "a key is expected"
            raise self._fault(line, reason)
        key = (text,) if kind == "text" else tuple(self._words(text).split("."))
        if self._next[:2] in {("mark", "="), ("mark", ":")}:
            self._take()
        return key, line

    def _begins_value(self) -> bool:
        kind, text, _ = self._next
        return kind in {"text", "long", "bare"} or (kind == "mark" and text in "{[")

    def _value(self, path: tuple[str, ...]) -> Iterator[Setting]:
        """Yield the settings of a value; a text without quotes goes to the end of its line."""
        kind, text, line = self._take()
        if kind == "mark" and text == "{":
            yield from self._block(path, "}")
        elif kind == "mark":
            yield from self._list(path)
        else:
            whole = self._words(text) if kind == "bare" else text
            value = _ESCAPE.sub(r"\1", whole) if kind == "text" else whole
            yield Setting(SourceLine(self._file, line), path, value)

    def _list(self, path: tuple[str, ...]) -> Iterator[Setting]:
        self._check_depth(path)
        for number in count():
            self._skip_lines()
            if self._next[:2] == ("mark", "]"):
                self._take()
                return
            if not self._begins_value():
                raise self._fault(self._next[2], "a list is not closed")
            yield from self._value((*path, str(number)))

    def _words(self, first: str) -> str:
        words = [first]
        while self._next[0] == "bare":
            words.append(self._take()[1])
        return " ".join(words)

    def _skip_lines(self) -> None:
        while self._next[0] == "line":
            self._take()

    def _take(self) -> tuple[str, str, int]:
        token = self._next
        self._next = next(self._tokens, token)  # the end stays
        return token

    def _check_depth(self, path: tuple[str, ...]) -> None:
        if len(path) > MAX_DEPTH:
            raise GatewayError(f"{self._file}: blocks are nested more than {MAX_DEPTH} levels deep")

    def _fault(self, line: int, reason: str) -> GatewayError:
        return GatewayError(f"{self._file}:{line}: the file is not readable: {reason}")
