"""`gateway archive names`: list the full names of shortened names, or look up one.

Exit status: 0 done or found, 1 done with errors or not found, 2 not done.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.archive.location import ArchiveLocation
from gateway.cli.parsers import ARCHIVE, JSON_RESULT, CommandParser
from gateway.night.cli.arguments import named_storage, written_location
from gateway.night.cli.compact import names_facts, print_findings, print_json, print_names
from gateway.terminal.console import open_console
from gateway.terminal.progress import progress
from gateway.terminal.text import print_line
from gateway.terminal.units import counted

if TYPE_CHECKING:
    from gateway.night.archive.lookup.name_lookup import DictionaryEntry


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("--find NAME", "look up a short, full or source name")
    parser.add(*JSON_RESULT)
    parser.add("--master URL", "accepted, and not used: no Spark starts")


def run(args: argparse.Namespace) -> int:
    if args.find is not None:
        return _print_entries(args.archive, args.find, as_json=args.json)
    return _build(written_location(args.archive), as_json=args.json)


def _build(location: ArchiveLocation, *, as_json: bool) -> int:
    errors = open_console(stderr=True)
    from gateway.night.reconcile.maintenance.dictionary import build_dictionary  # loads PyArrow

    with progress(errors) as show_step:
        report = build_dictionary(location, None, show_step)
    status = print_findings(report.findings, errors)
    if as_json:
        print_json(names_facts(report), report.findings)
    else:
        print_names(report)
    return status


def _print_entries(archive: str, name: str, *, as_json: bool) -> int:
    from gateway.night.archive.lookup.name_lookup import find_name  # loads PyArrow

    with named_storage(archive) as storage:
        found = list(find_name(storage, name))
    if as_json:
        entries = [asdict(entry) for entry in found]
        print(json.dumps({"version": 1, "entries": entries}, default=datetime.isoformat))
        return int(not found)
    for line in (line for entry in found for line in _entry_lines(entry)):
        print_line(line)
    if not found:
        print_line(f"{name}: is not in the dictionary")
    return int(not found)


def _entry_lines(entry: DictionaryEntry) -> list[str]:
    """Describe an entry; control characters of a name are escaped."""
    target = f"{entry.target} ({entry.system})" if entry.target else "never sent"
    levels = "an unknown name" if entry.levels is None else "/".join(entry.levels)
    whole = levels if entry.whole is None else entry.whole
    lines = [f"{entry.name}", f"  stands for  {whole}", f"  at          {target}"]
    lines += [f"  source      {source}" for source in entry.sources if source]
    if entry.first_time is not None and entry.last_time is not None:
        first, last = (f"{at:%Y-%m-%d %H:%M:%S}" for at in (entry.first_time, entry.last_time))
        lines.append(f"  sent        {counted(entry.count, 'time')}, {first} to {last} UTC")
    lines.append(f"  by          {', '.join(entry.gateways)}")
    return lines
