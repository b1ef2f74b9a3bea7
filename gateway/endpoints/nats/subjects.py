"""Subjects as the server takes them; the dialect has the rules of names."""

from __future__ import annotations

import re
from typing import Final

from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import (
    EMPTY_ELEMENT,
    SURROGATE,
    TOO_LONG,
    WHITE_SPACE,
    WILDCARD_IN_NAME,
)

CONTROL_LINE: Final = 4_096  # bytes
MAX_BYTES: Final = CONTROL_LINE - 96  # the verb, a reply subject of a client library, and sizes
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f]")


def refuse_subject(subject: str) -> None:
    """Raise TranslationError for a subject that the server would lose, misread or misdeliver."""
    refuse_reply(subject)
    tokens = subject.split(".")
    if {"*", ">"} & {*tokens}:
        raise TranslationError("nats", subject, WILDCARD_IN_NAME, "a token is a wildcard")
    if "" in tokens:
        raise TranslationError("nats", subject, EMPTY_ELEMENT, "a token is empty")


def refuse_long_line(subject: str, reply: str) -> None:
    """Raise TranslationError for a subject and a reply subject that no command takes together."""
    size = len(subject.encode()) + len(reply.encode())
    if size > MAX_BYTES:
        reason = f"subject and reply subject are {size} bytes, limit {MAX_BYTES}"
        raise TranslationError("nats", subject, TOO_LONG, reason)


def refuse_reply(subject: str) -> None:
    """Raise TranslationError for text that would break the line of a command."""
    if not subject or _FORBIDDEN.search(subject):
        raise TranslationError("nats", subject, WHITE_SPACE, "it is empty or has white space")
    try:
        size = len(subject.encode())
    except UnicodeEncodeError as error:
        raise TranslationError("nats", subject, SURROGATE, "it has no UTF-8") from error
    if size > MAX_BYTES:
        raise TranslationError("nats", subject, TOO_LONG, f"is {size} bytes, limit {MAX_BYTES}")


def selects(pattern: str, subject: str) -> bool:
    """Return whether a subscription receives the messages of `subject`."""
    wanted, tokens = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        if len(tokens) < len(wanted):
            return False
        wanted, tokens = wanted[:-1], tokens[: len(wanted) - 1]
    return len(wanted) == len(tokens) and all(
        part in {"*", token} for part, token in zip(wanted, tokens, strict=True)
    )
