"""Redaction of secrets in log lines, also in the texts of drivers' errors."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from gateway.config.load import Configuration

HIDDEN: Final = "***"
MAX_LATER: Final = 64  # secrets that took the place of others; older ones are valid no more
MIN_SECRET_LENGTH: Final = 4  # characters; redacting shorter texts would only damage other words
_USER_INFO = re.compile(r"(?<=://)[^/@\s\"']*:[^/@\s\"']*(?=@)")  # name:password@ of a URL
_SECRET_NAME = re.compile(r"pass(word|wd|phrase)?$|secret|token$|credential", re.IGNORECASE)


class Redactor:
    """Replaces known secrets, and passwords in URLs.

    Thread-safe: the pattern is replaced in one assignment; self._lock guards the secrets.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: set[str] = set()
        self._later: deque[str] = deque(maxlen=MAX_LATER)
        self._pattern: re.Pattern[str] | None = None

    def hide(self, secrets: Iterable[str]) -> None:
        """Add secrets."""
        with self._lock:
            self._secrets |= {each for each in secrets if len(each) >= MIN_SECRET_LENGTH}
            self._renew()

    def learn(self, secret: str) -> None:
        """Add a secret that takes the place of an earlier one."""
        with self._lock:
            if len(secret) >= MIN_SECRET_LENGTH:
                self._later.append(secret)
                self._renew()

    def _renew(self) -> None:
        spellings = {
            form for secret in (*self._secrets, *self._later) for form in _spellings(secret)
        }
        if spellings:  # the longest first: a secret may contain another one
            ordered = sorted(spellings, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, ordered)))

    def redact(self, line: str) -> str:
        """The line with `HIDDEN` in place of every secret."""
        if self._pattern is not None:
            line = self._pattern.sub(HIDDEN, line)
        return _USER_INFO.sub(HIDDEN, line) if "://" in line else line

    def clean(self, value: object) -> object:
        """A JSON value with every text redacted; other types become text."""
        match value:
            case None | bool() | int() | float():
                return value
            case dict():
                return {str(key): self.clean(each) for key, each in value.items()}
            case list() | tuple():
                return [self.clean(each) for each in value]
            case _:
                return self.redact(str(value))


def redactor_of(configuration: Configuration) -> Redactor:
    """A redactor that knows all secrets of a configuration."""
    redactor = Redactor()
    redactor.hide(secrets_of(configuration))
    return redactor


def secrets_of(configuration: Configuration) -> set[str]:
    """All secrets of a configuration."""
    return {
        secret
        for endpoint in configuration.endpoints.values()
        for secret in _secrets_in(endpoint.settings)
    } | set(_secrets_in(configuration))


def _secrets_in(value: object) -> Iterator[str]:
    """Fields declared secret, `name=value` texts with a secret's name, passwords in URLs."""
    if not is_dataclass(value):
        return
    for field in fields(value):
        content = getattr(value, field.name)
        if field.metadata.get("secret"):
            yield from _texts(content)
        elif is_dataclass(content):
            yield from _secrets_in(content)
        else:
            texts = content if isinstance(content, tuple) else (content,)
            for text in texts:
                if isinstance(text, str):
                    yield from _secrets_within(text)


def _texts(content: object) -> Iterator[str]:
    """Yield a secret, those of a list, or the values of a mapping with the last word of each."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from (value, str(value).rpartition(" ")[2])  # of `Bearer TOKEN`
    elif isinstance(content, Iterable):
        yield from content


def _secrets_within(text: str) -> Iterator[str]:
    name, equals, value = text.partition("=")
    if equals and _SECRET_NAME.search(name):
        yield value
    for found in _USER_INFO.findall(text):
        password = found.partition(":")[2]
        yield from (password, unquote(password))


def _spellings(secret: str) -> Iterator[str]:
    """The forms of a secret in error texts: plain, in JSON, in `repr` and in a URL."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="", errors="backslashreplace")
    yield quote_plus(secret, errors="backslashreplace")
