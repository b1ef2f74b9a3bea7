"""`gateway preflight NAMES.txt --from S --to S,S`: which real names fit, before anything runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.parsers import Commands
from gateway.dialects.registry import find_dialect
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.translate.names import Length, Translator


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one name at one target: `name` when it fits, else the rule it breaks."""

    line: int
    source: str
    target: str
    name: str
    rule: str = ""
    reason: str = ""
    shortened: bool = False


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("preflight", help="which names of a file fit another system")
    parser.add_argument("names", type=Path, metavar="NAMES.txt", help="one name a line, UTF-8")
    parser.add_argument("--from", dest="source", required=True, metavar="SYSTEM")
    parser.add_argument("--to", dest="targets", required=True, metavar="SYSTEM[,SYSTEM]")
    parser.add_argument("--shorten", action="store_true", help="what a digest would make of them")
    parser.add_argument("--all", action="store_true", help="show the names that fit, too")
    parser.add_argument("--json", action="store_true", help="one JSON object for each name")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 when every name fits everywhere, 1 when one does not."""
    source = find_dialect(args.source)
    length = Length.SHORTEN if args.shorten else Length.REFUSE
    translators = [
        Translator(source, find_dialect(target), length=length)
        for target in args.targets.split(",")
    ]
    counts: Counter[tuple[str, str]] = Counter()
    for fate in _fates(args.names, translators):
        counts[fate.target, fate.rule] += 1
        if args.json:
            print(json.dumps(_answer(fate)))
        elif fate.rule:
            print(f"{args.names}:{fate.line}: {fate.reason} (rule {fate.rule})")
        elif args.all or fate.shortened:
            print(f"{args.names}:{fate.line}: {fate.target}: {fate.source} -> {fate.name}")
    for translator in translators:
        print(
            _summary(translator.target.name, counts), file=sys.stderr if args.json else sys.stdout
        )
    return int(any(rule for _, rule in counts))


def _fates(path: Path, translators: list[Translator]) -> Iterator[Fate]:
    """One fate for every name and target; empty lines are no names."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if name := line.rstrip("\r\n"):
                    for translator in translators:
                        yield _fate(number, name, translator)
    except OSError as error:
        raise GatewayError(f"{path}: cannot read the names: {error.strerror}") from error


def _fate(number: int, name: str, translator: Translator) -> Fate:
    target = translator.target.name
    try:
        made = translator.name(name)
    except (SubjectError, TranslationError) as error:
        return Fate(number, name, target, "", error.rule, str(error))
    last = made.rpartition(translator.target.separator)[2]
    return Fate(
        number, name, target, made, shortened=translator.dictionary.recall(last) is not None
    )


def _answer(fate: Fate) -> dict[str, object]:
    answer: dict[str, object] = {"line": fate.line, "from": fate.source, "to": fate.target}
    if fate.rule:
        return answer | {"refused": fate.reason, "rule": fate.rule}
    return answer | {"name": fate.name} | ({"shortened": True} if fate.shortened else {})


def _summary(target: str, counts: Counter[tuple[str, str]]) -> str:
    of_target = {rule: number for (to, rule), number in counts.items() if to == target}
    fit = of_target.pop("", 0)
    refused = ", ".join(f"{number} {rule}" for rule, number in sorted(of_target.items()))
    return f"{target}: {fit} fit" + (f"; refused: {refused}" if refused else "")
