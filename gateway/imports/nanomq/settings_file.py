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
from typing import Final

from gateway.errors import GatewayError
from gateway.imports.source_lines import SourceLine

MAX_DEPTH: Final = 32
_LINE: Final = re.compile(r"\s*([\w.$-]+)\s*=\s*(.*?)\s*")
_IS_LINES: Final = re.compile(r"^\s*(?:aws\.)?bridge\.mqtt\.[\w.-]+\s*=", re.MULTILINE)
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
        found = _LINE.fullmatch(line)
        if found is not None and not line.lstrip().startswith("#"):
            value = found[2].removeprefix('"').removesuffix('"')
            yield Setting(SourceLine(file, number), tuple(found[1].split(".")), value)


class _Blocks:
    """Reader of the form with blocks. Mutable: moves through the tokens."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._tokens = list(self._tokens_of(text))
        self._at = 0

    def settings(self) -> Iterator[Setting]:
        """Yield all settings.

        Raises:
            GatewayError: the file is not of this form.
        """
        while self._tokens[self._at][0] == "line":
            self._take()
        if self._tokens[self._at][:2] == ("mark", "{"):  # as in JSON, braces around the file
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
            kind, text = self._next_value()
            if (kind, text) == ("mark", "{"):
                yield from self._block(inner, "}")
            elif (kind, text) == ("mark", "["):
                yield from self._list(inner)
            elif kind in {"text", "long", "bare"}:
                yield Setting(SourceLine(self._file, line), inner, self._rest(kind, text))
            else:
                raise self._fault(line, f"{'.'.join(inner)!r} has no value")

    def _key(self, end: str) -> tuple[tuple[str, ...], int]:
        """Return the next key, with the mark behind it taken; empty at the end of the block."""
        kind, text, line = self._take()
        while kind == "line":
            kind, text, line = self._take()
        if (kind == "end" and not end) or (kind, text) == ("mark", end):
            return (), line
        if kind not in {"text", "bare"}:
            raise self._fault(
                line, "a key is expected" if kind != "end" else "a block is not closed"
            )
        key = tuple(text.split(".")) if kind == "bare" else (text,)
        while self._tokens[self._at][0] == "bare":  # a key with blanks
            key = (*key[:-1], f"{key[-1]} {self._take()[1]}")
        if self._tokens[self._at][:2] in {("mark", "="), ("mark", ":")}:
            self._take()
        return key, line

    def _next_value(self) -> tuple[str, str]:
        kind, text, _ = self._take()
        while kind == "line":
            kind, text, _ = self._take()
        return kind, text

    def _rest(self, kind: str, text: str) -> str:
        """Return a value; one without quotes goes to the end of its line."""
        value = _ESCAPE.sub(r"\1", text) if kind == "text" else text
        while kind == "bare" and self._tokens[self._at][0] == "bare":
            value += f" {self._take()[1]}"
        return value

    def _list(self, path: tuple[str, ...]) -> Iterator[Setting]:
        self._check_depth(path)
        number = 0
        while True:
            kind, text, line = self._take()
            inner = (*path, str(number))
            if (kind, text) == ("mark", "]"):
                return
            if (kind, text) == ("mark", "{"):
                yield from self._block(inner, "}")
            elif (kind, text) == ("mark", "["):
                yield from self._list(inner)
            elif kind in {"text", "long", "bare"}:
                yield Setting(SourceLine(self._file, line), inner, self._rest(kind, text))
            elif kind == "line":
                continue
            else:
                raise self._fault(line, "a list is not closed")
            number += 1

    def _take(self) -> tuple[str, str, int]:
        token = self._tokens[self._at]
        self._at += token[0] != "end"
        return token

    def _check_depth(self, path: tuple[str, ...]) -> None:
        if len(path) > MAX_DEPTH:
            raise GatewayError(f"{self._file}: blocks are nested more than {MAX_DEPTH} levels deep")

    def _fault(self, line: int, reason: str) -> GatewayError:
        return GatewayError(f"{self._file}:{line}: the file is not readable: {reason}")
