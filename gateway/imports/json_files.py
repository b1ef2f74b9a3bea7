"""JSON files of other bridges: the entries of the lists at the top, each with its line."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.errors import GatewayError
from gateway.imports.source_lines import SourceLine

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """An entry of a list at the top of the file, or the value of a name there that has no list."""

    location: SourceLine
    section: str
    value: object

    def text(self, key: str) -> str:
        """Return a text of the entry; empty where it has none."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return found if isinstance(found, str) else ""


def read_json(file: str, data: bytes) -> list[JsonEntry]:
    """Return the entries of all sections in the order of the file.

    Raises:
        GatewayError: the file is not an object of JSON.
    """
    try:
        text = data.removeprefix(BOM_UTF8).decode("utf-8")
        whole = json.loads(text)
        if not isinstance(whole, dict):
            raise GatewayError(f"{file}: the file is no object of JSON; it begins with `{{`")
        return list(_entries(file, text))
    except UnicodeDecodeError as error:
        raise GatewayError(f"{file}: the file is not UTF-8; save it as UTF-8") from error
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        raise GatewayError(f"{where}: the file is not JSON: {error.msg}") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise GatewayError(f"{file}: the file is not JSON: {error}") from error
    except RecursionError as error:
        raise GatewayError(f"{file}: the lists and objects are nested too deeply") from error


def _entries(file: str, text: str) -> Iterator[JsonEntry]:
    """Yield the entries of a text that is an object of JSON."""
    at, line, counted = _skip(text, _skip(text, 0) + 1), 1, 0
    while text[at] != "}":
        section, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # behind the colon
        is_list = text[at] == "["
        at = _skip(text, at + is_list)
        while text[at] != "]" or not is_list:
            line, counted = line + text.count("\n", counted, at), at
            value, at = _DECODER.raw_decode(text, at)
            yield JsonEntry(SourceLine(file, line), section, value)
            at = _skip(text, at)
            if not is_list:
                break
            at = _skip(text, at + (text[at] == ","))
        at = _skip(text, at + is_list)
        at = _skip(text, at + (text[at] == ","))


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
