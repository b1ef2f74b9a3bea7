"""`gateway check CONFIG`: validate a configuration and list every finding.

Exit status: 0 no error, 1 errors.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from gateway.check.examine import examine
from gateway.check.guarantee import effective_mode, lost_fields, repeat_window
from gateway.cli.parsers import CONFIG, WITHOUT_SECRETS, CommandParser
from gateway.config.load import Configuration, load
from gateway.errors import ConfigError, ConfigErrors
from gateway.routing.route import Route
from gateway.terminal.text import print_line

_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)
    parser.add(*WITHOUT_SECRETS)
    parser.add("--strict", "treat warnings as errors")
    parser.add("--format", "format of the findings", "text", choices=FORMATS)


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit status 0 without an error, 1 with one."""
    configuration: Configuration | None = None
    try:
        configuration = load(args.config, without_secrets=args.without_secrets)
        findings = examine(configuration)
    except ConfigErrors as error:
        findings = error.findings
    FORMATS[args.format](findings)
    if configuration is not None and args.format == "text":
        for line in (each for r in configuration.routes for each in _route_lines(r, configuration)):
            print_line(line)
        unread = "; without the values of references" if args.without_secrets else ""
        print_line(f"{args.config}: {_summary(findings)}{unread}")
    fatal = {"error", "warning"} if args.strict else {"error"}
    return int(any(finding.severity in fatal for finding in findings))


def _route_lines(route: Route, configuration: Configuration) -> Iterator[str]:
    def hidden(text: str) -> str:
        return configuration.hidden.hide(text, ("routes", route.name))

    source = hidden(route.source.text)
    yield f"{route.name}: {route.endpoint} ({route.dialect.name}) {source}"
    for target in route.targets:
        template = hidden(target.template.text) if target.template else "the same name"
        yield f"  -> {target.endpoint} ({target.system}) {template}"
        mode = effective_mode(route, target, configuration).name.lower()
        lost = ", ".join(lost_fields(route, target, configuration))
        window = repeat_window(route, target, configuration)
        once = f", and once within {window:g} s" if window else ""
        yield f"     {mode}{once}" + (f"; cannot cross: {lost}" if lost else "")


def _summary(findings: Sequence[ConfigError]) -> str:
    counts = Counter(finding.severity for finding in findings)
    found = [(counts[each], each) for each in ("error", "warning", "note") if counts[each]]
    words = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in found]
    return ", ".join(words) or "no findings"


def _as_text(findings: Sequence[ConfigError]) -> None:
    for finding in findings:
        print_line(str(finding), sys.stderr if finding.severity == "error" else sys.stdout)


def _as_json(findings: Sequence[ConfigError]) -> None:
    fields = ("path", "line", "column", "rule", "severity", "hint")
    shown = [
        {field: getattr(each, field) for field in fields}
        | {"message": each.reason, "examples": [asdict(example) for example in each.examples]}
        for each in findings
    ]
    print(json.dumps(shown, indent=2))


def _as_github(findings: Sequence[ConfigError]) -> None:
    """Print workflow commands, which GitHub shows beside the line."""
    for each in findings:
        text = f"{each.reason}; {each.hint}" if each.hint else each.reason
        path = _escaped(each.path).replace(":", "%3A").replace(",", "%2C")
        where = f"file={path},line={each.line},col={each.column},title={each.rule}"
        print_line(f"::{_GITHUB[each.severity]} {where}::{_escaped(text)}")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


FORMATS: dict[str, Callable[[Sequence[ConfigError]], None]] = {
    "text": _as_text,
    "json": _as_json,
    "github": _as_github,
}
