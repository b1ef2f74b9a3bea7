"""Adds commands to the `gateway` command, and the options that several commands have."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar

from gateway.dialects.products import choice_hint
from gateway.errors import nearest
from gateway.untyped import Untyped

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction["CommandParser"]  # noqa: SLF001  # no public name
else:
    Commands = object

Chosen = TypeVar("Chosen")

PATHS: Final = ("C", "CONFIG", "DIR", "FILE", "FOLDER", "NAMES.txt", "PATH")
TYPES: Final[Mapping[str, Callable[[str], object]]] = {  # by the word for the value; others: text
    **dict.fromkeys(PATHS, Path),
    **dict.fromkeys(("N", "NUMBER", "PORT"), int),
}
# Arguments of several commands.
CONFIG: Final = ("CONFIG", "YAML file, or a folder of YAML files")
ARCHIVE: Final = ("ARCHIVE", "folder or URL of the archive, as in the configuration")
JSON_RESULT: Final = ("--json", "print the result as one JSON object")
JSON_ANSWER: Final = ("--json", "print JSON as `gateway names` does")
MASTER: Final = ("--master URL", "Spark master", "local[*]")
SEAL_KEY: Final = (
    "--seal-key FILE",
    "file with the value of archive.seal_key (the environment variable GATEWAY_SEAL_KEY)",
)
WITHOUT_SECRETS: Final = (  # no command that runs a configuration has it
    "--without-secrets",
    "for a machine without secrets: accept references without a value and absent files",
)


_UNKNOWN: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)


class CommandParser(argparse.ArgumentParser):
    """The parser of a command, to which its module adds its options and its actions."""

    def error(self, message: str) -> NoReturn:
        """End the process with the usage and an error; a misspelled word gets the nearest one."""
        if found := _UNKNOWN.search(message):
            choices = re.findall(r"[^\s',]+", found[2])
            hint = choice_hint(found[1], choices) or nearest(found[1], choices)
            if hint.startswith("did you mean"):  # else argparse's own list of the choices
                message = f"{message[: found.start()]}{found[1]!r} is no choice; {hint}"
        super().error(message)

    def add(
        self,
        form: str,
        text: str,
        default: object = None,
        **more: Untyped,
    ) -> None:
        """Add an argument, such as `FILE`, `--size MB` or the switch `--json`.

        The default, or else the word for the value, decides the type; the help names the default.
        """
        *flags, word = form.split()
        if word.startswith("-"):
            flags, word = [*flags, word], ""
        if not word and "choices" not in more:
            self.add_argument(*flags, action="store_true", help=text)
            return
        facts: dict[str, Any] = {"metavar": word or None, "default": default, "help": text}
        facts["type"] = type(default) if isinstance(default, int | float) else TYPES.get(word)
        if default:
            facts["help"] += f" ({default:g})" if isinstance(default, float) else f" ({default})"
        names = flags or [more.pop("dest", word.lower())]
        self.add_argument(*names, **facts | more)


def add_command(
    commands: Commands,
    name: str,
    summary: str,
    details: str = "",
    run: Callable[[argparse.Namespace], int] | None = None,
) -> CommandParser:
    """Add a command and return its parser; `run` runs it and returns the exit status.

    `summary` is an imperative in lower case without a full stop: the command's line in the list of
    commands, and the first sentence of its own help. `details` are further sentences.
    """
    sentence = f"{summary[:1].upper()}{summary[1:]}."
    description = f"{sentence} {details}".rstrip()
    parser = commands.add_parser(name, help=summary, description=description)
    parser.set_defaults(command_parser=parser, **({"run": run} if run else {}))
    return parser


def add_modules(commands: Commands, modules: Mapping[str, str]) -> None:
    """Add a command for each module.

    The docstring of the module is the help of the command: "`gateway NAME`: summary." and, after an
    empty line, the details. Its `add_options` adds the options to the parser, and its `run` runs
    the command, unless that has actions.
    """
    for name, place in modules.items():
        module = import_module(place)
        summary, _, details = (module.__doc__ or "").partition(": ")[2].partition("\n\n")
        run = getattr(module, "run", None)
        more = " ".join(details.split())
        module.add_options(add_command(commands, name, summary.removesuffix("."), more, run))


def options_of(kind: Callable[..., Chosen], args: argparse.Namespace, **others: object) -> Chosen:
    """Return a value whose fields have the options of the same names; `others` have none."""
    named = {name: getattr(args, name) for name in signature(kind).parameters if name in args}
    return kind(**named | others)


def seal_key(args: argparse.Namespace) -> bytes | None:
    """Return the key in the file of `--seal-key`, or in the environment; None without a key.

    Raises:
        ArchiveError: the file cannot be read, or is empty.
    """
    from gateway.archive.seal_key import key_from_environment, read_key  # at use

    return key_from_environment() if args.seal_key is None else read_key(args.seal_key)
