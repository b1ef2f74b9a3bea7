"""Keeps secrets out of log lines, even when a driver's error repeats one; it knows texts only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from urllib.parse import quote, quote_plus, unquote

from gateway.config.load import Configuration

HIDDEN = "***"
SHORTEST = 4  # characters; to hide less would tear words apart and hide nothing
_USER_INFO = re.compile(r"(?<=://)[^/@\s\"']*:[^/@\s\"']*(?=@)")  # name:password@ of a URL
_SECRET_NAME = re.compile(r"pass(word|wd|phrase)?$|secret|token$|credential", re.IGNORECASE)


class Redactor:
    """Mutable: a configuration that is read again adds to what it hides."""

    def __init__(self) -> None:
        self._hidden: set[str] = set()
        self._known: re.Pattern[str] | None = None

    def hide(self, secrets: Iterable[str]) -> None:
        self._hidden |= {each for each in secrets if len(each) >= SHORTEST}
        spellings = {form for secret in self._hidden for form in _spellings(secret)}
        if spellings:  # the longest first, so that one inside another leaves no rest
            ordered = sorted(spellings, key=len, reverse=True)
            self._known = re.compile("|".join(map(re.escape, ordered)))

    def redact(self, line: str) -> str:
        """The line with `HIDDEN` for every secret in it."""
        if self._known is not None:
            line = self._known.sub(HIDDEN, line)
        return _USER_INFO.sub(HIDDEN, line) if "://" in line else line

    def clean(self, value: object) -> object:
        """A value for JSON with every text in it redacted; what JSON does not have becomes text."""
        match value:
            case None | bool() | int() | float():
                return value
            case dict():
                return {str(key): self.clean(each) for key, each in value.items()}
            case list() | tuple():
                return [self.clean(each) for each in value]
            case _:
                return self.redact(str(value))


def secrets_of(configuration: Configuration) -> set[str]:
    """Every text that a configuration holds and nobody may read in a log."""
    return {
        secret
        for endpoint in configuration.endpoints.values()
        for secret in _secrets_in(endpoint.settings)
    } | set(_secrets_in(configuration))


def _secrets_in(value: object) -> Iterator[str]:
    """Fields declared secret, `name=value` texts with a telling name, passwords in URLs."""
    if not is_dataclass(value):
        return
    for field in fields(value):
        content = getattr(value, field.name)
        if field.metadata.get("secret"):
            yield from [content] if isinstance(content, str) else content or ()
        elif is_dataclass(content):
            yield from _secrets_in(content)
        else:
            texts = content if isinstance(content, tuple) else (content,)
            for text in texts:
                if isinstance(text, str):
                    yield from _secrets_within(text)


def _secrets_within(text: str) -> Iterator[str]:
    name, equals, value = text.partition("=")
    if equals and _SECRET_NAME.search(name):
        yield value
    for found in _USER_INFO.findall(text):
        password = found.partition(":")[2]
        yield from (password, unquote(password))


def _spellings(secret: str) -> Iterator[str]:
    """How an error may repeat a secret: as it is, in JSON, in `repr`, in a URL."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="", errors="backslashreplace")
    yield quote_plus(secret, errors="backslashreplace")
