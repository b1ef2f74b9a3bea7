"""`gateway preflight NAMES.txt --from S --to S,S`: check which names of a file fit other systems.

Exit status: 0 every name fits every system, 1 not all do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway.cli.parsers import CommandParser
from gateway.dialects.brokers import BROKERS, dialect_at
from gateway.dialects.registry import find_dialect
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.terminal.console import open_console
from gateway.terminal.progress import ShowStep, progress
from gateway.terminal.text import print_line, visible_lines
from gateway.translate.names import OnTooLong, Renderer, Translator

_BATCH: Final = 1_000  # names between two updates of the progress
_LARGE: Final = 1 << 20  # bytes: a file with progress

Result: TypeAlias = dict[str, Any]  # of one name at one target, as `--json` prints it


def add_options(parser: CommandParser) -> None:
    parser.add("NAMES.txt", "file with one name per line, in UTF-8", dest="names")
    parser.add("--from SYSTEM", "system of the names", dest="source", required=True)
    text = f"systems to check, or brokers with limits of their own: {', '.join(BROKERS)}"
    parser.add("--to SYSTEM[,SYSTEM]", text, dest="targets", required=True)
    parser.add("--shorten", "shorten names that are too long by a digest")
    parser.add("--all", "print names that fit, too")
    parser.add("--json", "print one JSON object per name and system")


def run(args: argparse.Namespace) -> int:
    """Print the results; exit status 0 when every name fits every target, else 1."""
    source = find_dialect(args.source)
    on_too_long = OnTooLong.SHORTEN if args.shorten else OnTooLong.REFUSE
    translators = [
        Translator(source, Renderer(dialect_at(target), on_too_long=on_too_long))
        for target in args.targets.split(",")
    ]
    counts: Counter[tuple[str, str]] = Counter()
    with _progress(args.names) as show_step:
        for results, share in _batches(args.names, translators):
            counts.update((result["to"], result.get("rule", "")) for result in results)
            if lines := [line for result in results if (line := _line(result, args))]:
                print(visible_lines("\n".join(lines)))
            show_step(f"checking {args.names}", share)
    end = sys.stderr if args.json else sys.stdout
    for translator in translators:
        print_line(_summary(translator.target.name, counts), end)
    return int(any(rule for _, rule in counts))


def _progress(path: Path) -> AbstractContextManager[ShowStep]:
    """Return the progress of a large file; a small one is checked before anybody reads it."""
    if path.is_file() and path.stat().st_size > _LARGE:
        return progress(open_console(stderr=True), steps=False)
    return nullcontext(lambda _text, _share: None)


def _batches(path: Path, translators: list[Translator]) -> Iterator[tuple[list[Result], float]]:
    """Yield the results of _BATCH lines, one for each name and target, and the share of the file.

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
                        results += [_result(number, name, translator) for translator in translators]
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


def _result(number: int, name: str, translator: Translator) -> Result:
    result: Result = {"line": number, "from": name, "to": translator.target.name}
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
