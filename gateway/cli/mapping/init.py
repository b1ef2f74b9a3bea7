"""`gateway init`: write a first mapping that runs.

Without --from, --to and --names it asks for them on a terminal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from gateway.check.examine import load_examined
from gateway.cli.mapping.init_list import names_of_list
from gateway.cli.mapping.init_text import SCHEMA_FILE, mapping_text, names_of, unset_variables
from gateway.cli.parsers import CommandParser
from gateway.config.json_schema import json_schema
from gateway.endpoints.registry import starters
from gateway.errors import ConfigErrors, GatewayError
from gateway.terminal.text import print_line


def add_options(parser: CommandParser) -> None:
    text = "file to write; an existing one is not overwritten"
    parser.add("FILE", text, Path("gateway.yaml"), nargs="?")
    parser.add("--from", "system of the source", dest="source", choices=starters())
    parser.add("--to", "system of the target", dest="target", choices=starters())
    parser.add(
        "--names NAMES",
        "first level of the names, such as orders, or a pattern in the spelling of the source,"
        " such as orders/{region}/{rest...}",
    )
    text = "file with names of the source, one per line, in place of --names: a route for each"
    parser.add("--list NAMES.txt", f"{text} first level", dest="list")
    second = ", or the next one where the source has the same one"
    for side, word, more in (("source", "from", ""), ("target", "to", second)):
        text = f"address of the {side} (localhost and the system's port{more})"
        parser.add(f"--{word}-address HOST:PORT", text, "", dest=f"{side}_address")


def run(args: argparse.Namespace) -> int:
    """Write the mapping, and the schema for editors beside it; exit status 0.

    Raises:
        GatewayError: the file exists, an answer is missing, or the names do not fit the systems.
    """
    if args.file.name == SCHEMA_FILE:
        raise GatewayError(f"{args.file}: is the name of the schema; write another file")
    if args.file.exists():
        raise GatewayError(f"{args.file}: exists; remove it, or write another file")
    source = args.source or _ask("From which system?", "mqtt", "--from")
    target = args.target or _ask("To which system?", "mqtt", "--to")
    if args.list is not None and args.names:
        raise GatewayError("init: give either --names or --list")
    if args.names and Path(args.names).is_file():
        raise GatewayError(f"init: {args.names} is a file; did you mean --list {args.names}?")
    if args.list is not None:
        names = names_of_list(args.list, source, target)
    else:
        question = "Which names? (their first level, or a pattern)"
        answer = args.names or _ask(question, "orders", "--names")
        names = [names_of(answer, source, target)]
    addresses = (args.source_address, args.target_address)
    text, needs, has_keyless = mapping_text(source, target, names, addresses, str(args.file))
    _check(text)
    _write_schema(args.file.parent / SCHEMA_FILE)
    _write(args.file, text)
    variables = unset_variables(text)
    steps = [f"set {variables}" if variables else "", needs, f"gateway check {args.file}"]
    print_line(f"{args.file}: written; next: {', then '.join(filter(None, steps))}")
    if has_keyless:
        print_line("messages without a key need the route that stands there as a comment")
    return 0


def _write_schema(path: Path) -> None:
    """Write the schema; an existing file stays."""
    text = json.dumps(json_schema(), indent=2) + "\n"
    if not path.exists():
        _write(path, text)
    elif not path.is_file() or path.read_bytes() != text.encode():
        print_line(f"{path}: kept; `gateway schema` prints the present one")


def _write(path: Path, text: str) -> None:
    """Write a new file, or none when the disk is full.

    Raises:
        GatewayError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink()
                raise
    except OSError as error:
        raise GatewayError(f"{path}: cannot write the file: {error.strerror}") from error


def _ask(question: str, default: str, option: str) -> str:
    """Return the answer to a question, or `default` for an empty one; ask again for another word.

    Raises:
        GatewayError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise GatewayError(f"init: no terminal to ask at; give {option}")
    choices = starters() if option != "--names" else None
    shown = f" ({', '.join(choices)})" if choices else ""
    while True:
        try:
            answer = input(f"{question}{shown} [{default}] ").strip() or default
        except EOFError as error:
            raise GatewayError(f"init: no answer; give {option}") from error
        if choices is None or answer in choices:
            return answer
        print_line(f"{answer!r} is none of them")


def _check(text: str) -> None:
    """Check the mapping before it is written.

    Raises:
        GatewayError: it has an error, the first of which the text has; or the disk is full.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.yaml"
        _write(file, text)
        try:
            _, found = load_examined(file, without_secrets=True)
        except ConfigErrors as errors:
            found = errors.findings
    for each in found:
        if each.severity == "error":
            raise GatewayError(f"init: {each.reason}; {each.hint or 'write other names'}")
