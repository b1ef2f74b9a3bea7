"""`gateway preflight NAMES.txt --from S --to S,S`: check which names of a file fit other systems.

With `--config CONFIG`, by its routes in place of systems: a line is a name, or a message as JSON,
`{"name": "a/b", "payload": {"site": "hall"}, "properties": {"line": 7}}`, of whose fields a route
may make the name. Exit status: 0 every name fits every system or target, 1 not all do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway.check.described_message import DescribedMessage
from gateway.cli.mapping.route_answers import NOT_TAKEN, find_route, route_answers
from gateway.cli.parsers import WITHOUT_SECRETS, CommandParser
from gateway.config.load import load
from gateway.dialects.brokers import BROKERS, dialect_at
from gateway.dialects.registry import find_dialect
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.routing.route import Route
from gateway.terminal.console import open_console
from gateway.terminal.progress import ShowStep, progress
from gateway.terminal.text import print_line, visible_lines
from gateway.translate.names import OnTooLong, Renderer, Translator

_BATCH: Final = 1_000  # names between two updates of the progress
_LARGE: Final = 1 << 20  # bytes: a file with progress

Result: TypeAlias = dict[str, Any]  # of one name at one target, as `--json` prints it
Check: TypeAlias = Callable[[str], list[Result]]  # of a line


def add_options(parser: CommandParser) -> None:
    parser.add("NAMES.txt", "file with one name per line, in UTF-8", dest="names")
    parser.add("--from SYSTEM", "system of the names", dest="source")
    text = f"systems to check, or brokers with limits of their own: {', '.join(BROKERS)}"
    parser.add("--to SYSTEM[,SYSTEM]", text, dest="targets")
    text = (
        "check the names at the targets of CONFIG; a line may be a message:"
        ' {"name": "a/b", "payload": {"site": "hall"}, "properties": {"line": 7}}'
    )
    parser.add("--config CONFIG", text)
    parser.add("--route ROUTE", "only this route of CONFIG")
    parser.add(*WITHOUT_SECRETS)
    parser.add("--shorten", "shorten names that are too long by a digest")
    parser.add("--all", "print names that fit, too")
    parser.add("--json", "print one JSON object per name and system")


def run(args: argparse.Namespace) -> int:
    """Print the results; exit status 0 when every name fits every target, else 1."""
    check = _by_routes(args) if args.config else _by_systems(args)
    counts: Counter[tuple[str, str]] = Counter()
    with _progress(args.names) as show_step:
        for results, share in _batches(args.names, check):
            counts.update((result["to"], result.get("rule", "")) for result in results)
            if lines := [line for result in results if (line := _line(result, args))]:
                print(visible_lines("\n".join(lines)))
            show_step(f"checking {args.names}", share)
    end = sys.stderr if args.json else sys.stdout
    for place in dict.fromkeys(to for to, _ in counts):
        print_line(_summary(place, counts), end)
    return int(any(rule for _, rule in counts))


def _by_systems(args: argparse.Namespace) -> Check:
    """Return the check of names at the systems in the arguments.

    Raises:
        GatewayError: there is none, or one is unknown.
    """
    if args.source is None or args.targets is None or args.route:
        raise GatewayError("preflight needs --from and --to, or --config")
    source = find_dialect(args.source)
    on_too_long = OnTooLong.SHORTEN if args.shorten else OnTooLong.REFUSE
    translators = [
        Translator(source, Renderer(dialect_at(target), on_too_long=on_too_long))
        for target in args.targets.split(",")
    ]
    return lambda line: [_result(line, each) for each in translators]


def _by_routes(args: argparse.Namespace) -> Check:
    """Return the check of names and messages at the targets of a configuration.

    Raises:
        GatewayError: it has errors, or there is no such route.
    """
    if args.source or args.targets or args.shorten:
        raise GatewayError("--config takes systems and limits from CONFIG: leave out the others")
    configuration = load(args.config, without_secrets=args.without_secrets)
    routes: Sequence[Route] = configuration.routes
    if args.route:
        routes = [find_route(configuration, args.route, args.config)]

    def check(line: str) -> list[Result]:
        found: list[Result] = []
        try:
            given = _message(line)
            for route in routes:
                found += route_answers(route, given, configuration)
        except SubjectError as error:
            return [{"from": line, "to": "source", "refused": str(error), "rule": error.rule}]
        except GatewayError as error:
            return [{"from": line, "to": "source", "refused": str(error), "rule": "message"}]
        taken = [each for each in found if each.get("rule") != NOT_TAKEN]
        if not taken:
            reason = f"no route takes {given.name!r}"
            return [{"from": given.name, "to": "source", "refused": reason, "rule": NOT_TAKEN}]
        return [{"from": given.name, "to": each.pop("target")} | each for each in taken]

    return check


def _message(line: str) -> DescribedMessage:
    """Return the message of a line: a name alone, or JSON.

    Raises:
        GatewayError: the JSON has other keys, or values that no message has.
    """
    try:
        found = json.loads(line) if line.startswith("{") else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or "name" not in found:
        return DescribedMessage(line)
    name, payload = found.pop("name"), found.pop("payload", None)
    properties = found.pop("properties", {})
    if found or not isinstance(name, str) or not isinstance(properties, dict):
        raise GatewayError("a message has `name`, a text; `payload`; and `properties`, an object")
    texts = {key: _text(value) for key, value in properties.items()}
    return DescribedMessage(name, texts, None if payload is None else _text(payload))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _progress(path: Path) -> AbstractContextManager[ShowStep]:
    """Return the progress of a large file; a small one is checked before anybody reads it."""
    if path.is_file() and path.stat().st_size > _LARGE:
        return progress(open_console(stderr=True), steps=False)
    return nullcontext(lambda _text, _share: None)


def _batches(path: Path, check: Check) -> Iterator[tuple[list[Result], float]]:
    """Yield the results of `check` for _BATCH lines, and the share of the file.

    Empty lines are skipped.
    """
    read = 0
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            lines = enumerate(file, start=1)
            while batch := list(islice(lines, _BATCH)):
                results = []
                for number, line in batch:
                    if name := line.decode("utf-8", "surrogateescape").rstrip("\r\n"):
                        results += [{"line": number} | each for each in check(name)]
                read += sum(len(line) for _, line in batch)
                yield results, min(read / max(size, 1), 1.0)
    except OSError as error:
        raise GatewayError(f"{path}: cannot read the names: {error.strerror}") from error


def _line(result: Result, args: argparse.Namespace) -> str:
    """Return the line of a result; an empty text without one."""
    if args.json:
        return json.dumps(result)
    place = f"{args.names}:{result['line']}:"
    if "rule" in result:
        return f"{place} {result['refused']} (rule {result['rule']})"
    if args.all or "shortened" in result:
        return f"{place} {result['to']}: {result['from']} -> {result['name']}"
    return ""


def _result(name: str, translator: Translator) -> Result:
    result: Result = {"from": name, "to": translator.target.name}
    try:
        made = translator.name(name)
    except (SubjectError, TranslationError) as error:
        return result | {"refused": str(error), "rule": error.rule}
    last = made.rpartition(translator.target.separator)[2]
    shortened = translator.renderer.dictionary.recall(last) is not None
    return result | {"name": made} | ({"shortened": True} if shortened else {})


def _summary(target: str, counts: Counter[tuple[str, str]]) -> str:
    of_target = {rule: number for (to, rule), number in counts.items() if to == target}
    fit = of_target.pop("", 0)
    refused = ", ".join(f"{number} {rule}" for rule, number in sorted(of_target.items()))
    return f"{target}: {fit} fit" + (f"; refused: {refused}" if refused else "")
