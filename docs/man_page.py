"""The man page gateway(1), written from the parsers of the commands in the macros of mdoc(7)."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gateway.cli import make_parser

PATH: Final = Path(__file__).parents[1] / "gateway" / "cli" / "shell" / "gateway.1"

_HEAD: Final = """\
.Dt GATEWAY 1
.Os
.Sh NAME
.Nm gateway
.Nd {summary}
.Sh SYNOPSIS
.Nm
.Ar COMMAND
.Op Ar argument ...
.Nm
.Ar COMMAND
.Fl -help
.Nm
.Fl -version
.Sh DESCRIPTION
.Nm
carries messages between TIBCO EMS, MQTT, Solace, NATS, RabbitMQ, Kafka,
AMQP 1.0, YAMI4 and IBM MQ style brokers.
It translates names and subscriptions, archives the messages, and reconciles
the archive.
.Sh COMMANDS
"""
_FOOT: Final = """\
.Sh ENVIRONMENT
.Bl -tag -width NO_COLOR
.It Ev NO_COLOR
With any value, no colours are shown.
.It Ev TERM
With
.Cm dumb ,
neither colours nor a progress bar are shown.
.El
.Sh EXIT STATUS
A command that has other exit statuses describes them.
.Bl -tag -width Ds
.It 0
Success.
.It 1
A negative answer, or an error in the files of the user.
.It 2
A wrong command line, or a command that cannot run on this machine.
.El
"""


def outdated() -> str | None:
    """Return the new text of the page; None when only its date differs."""
    new = page()
    old = PATH.read_text(encoding="utf-8") if PATH.exists() else ""
    return None if new.partition("\n")[2] == old.partition("\n")[2] else new


def page() -> str:
    """Return the page, with the date of today in its first line."""
    parser = make_parser()
    summary = str(parser.description).rstrip(".")
    today = f"{datetime.now(tz=UTC):%B %-d, %Y}"
    head = _HEAD.format(summary=summary[:1].lower() + summary[1:])
    return f".Dd {today}\n{head}{''.join(_commands(parser, ()))}{_FOOT}"


def _commands(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[str]:
    """Yield a section for each command without commands of its own."""
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001  # argparse has no public list
    for action in nested:
        for name, each in action.choices.items():
            yield from _commands(each, (*words, name))
    if not nested:
        yield "".join(f"{line}\n" for line in _section(parser, words))


def _section(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[str]:
    yield f".Ss gateway {' '.join(words)}"
    yield ".Nm"
    yield f".Cm {' '.join(words)}"
    actions = [each for each in parser._actions if each.dest != "help"]  # noqa: SLF001  # as above
    actions.sort(key=lambda each: not each.option_strings)  # positional arguments come last
    for action in actions:
        term = _term(action)
        yield f".{term}" if action.required and action.nargs != "*" else f".Op {term}"
    yield ".Pp"
    yield from _text(parser.description or "")
    if actions:
        yield ".Bl -tag -width Ds"
        for action in actions:
            yield f".It {_term(action)}"
            yield from _text(_help(action))
        yield ".El"


def _term(action: argparse.Action) -> str:
    """Return the macros of an option or a positional argument, with its value."""
    flags = " , ".join(f"Fl {_escaped(flag[1:])}" for flag in action.option_strings)
    if action.nargs == 0:
        return flags
    if action.metavar is None and action.choices is not None:
        value = "Cm " + " | ".join(map(str, action.choices))
    else:
        value = f"Ar {_escaped(str(action.metavar or action.dest.upper()))}"
    if action.nargs in {"*", "+"}:
        value += " ..."
    return f"{flags} {value}".lstrip()


def _help(action: argparse.Action) -> str:
    text = argparse.HelpFormatter("gateway")._expand_help(action)  # noqa: SLF001  # fills `%(default)s`
    return f"{text[:1].upper()}{text[1:]}."


def _text(text: str) -> Iterator[str]:
    """Yield lines with one sentence each, as mdoc wants them, or less."""
    for sentence in re.split(r"(?<=[.:;]) (?=[A-Z])", text):
        yield from map(_escaped, textwrap.wrap(sentence, 78, break_on_hyphens=False))


def _escaped(text: str) -> str:
    """Return text that no macro and no request begins."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
