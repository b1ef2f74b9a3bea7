"""`gateway check CONFIG`: validate a configuration and list every finding.

With the configurations of several gateways, each is validated alone, and then all together: cycles,
messages that arrive twice, equal names, and brokers without a `broker_id`. Exit status: 0 no error,
1 errors.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.check.examine import load_examined
from gateway.check.fleet import FleetResult, examine_fleet
from gateway.check.guarantee import GUARANTEES, effective_mode, lost_fields, repeat_window
from gateway.cli.parsers import CONFIG, WITHOUT_SECRETS, CommandParser
from gateway.config.load import Configuration
from gateway.errors import ConfigError, ConfigErrors
from gateway.routing.route import Route
from gateway.terminal.text import print_line, print_words
from gateway.terminal.units import counted

MANY = 3  # notes by one rule about one file, of which only the first is printed
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG, nargs="+")
    parser.add(*WITHOUT_SECRETS)
    parser.add("--strict", "treat warnings as errors")
    parser.add("--all", f"print each note, and not only the first where a rule has {MANY} or more")
    parser.add("--format", "format of the findings", "text", choices=FORMATS)


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit status 0 without an error, 1 with one."""
    checked = [_check(path, without_secrets=args.without_secrets) for path in args.config]
    fleet = _check_together(checked) if len(checked) > 1 else None
    findings = [finding for each in checked for finding in each.findings]
    if args.format == "text" and not args.all:
        _as_grouped_text(findings)
    else:
        FORMATS[args.format](findings)
    if args.format == "text":
        for line in _lines_of_fleet(checked, fleet) if fleet else _lines(checked[0]):
            print_line(line)
    fatal = {"error", "warning"} if args.strict else {"error"}
    return int(any(finding.severity in fatal for finding in findings))


@dataclass(slots=True)
class _Checked:
    """A configuration with its findings; None when the file has errors.

    Mutable: the findings about the fleet are added.
    """

    path: Path
    configuration: Configuration | None
    findings: list[ConfigError]
    unread: str = ""  # the end of its line


def _check(path: Path, *, without_secrets: bool) -> _Checked:
    unread = "; without the values of references" if without_secrets else ""
    try:
        return _Checked(path, *load_examined(path, without_secrets=without_secrets), unread)
    except ConfigErrors as error:
        return _Checked(path, None, error.findings)


def _check_together(checked: Sequence[_Checked]) -> FleetResult:
    """Examine all configurations without errors together, and add the findings to each."""
    read = [each for each in checked if each.configuration is not None]
    result = examine_fleet(
        [(each.path, each.configuration) for each in read if each.configuration is not None]
    )
    for each, more in zip(read, result.findings, strict=True):
        found = [*each.findings, *more]
        each.findings = sorted(found, key=lambda one: (one.path, one.line, one.column))
    return result


def _lines(checked: _Checked) -> Iterator[str]:
    configuration = checked.configuration
    if configuration is not None:
        for route in configuration.routes:
            yield from _route_lines(route, configuration)
    yield f"{checked.path}: {_summary(checked.findings)}{checked.unread}"


def _lines_of_fleet(checked: Sequence[_Checked], fleet: FleetResult) -> Iterator[str]:
    """Yield a line for each file, and what is proven about all of them."""
    for each in checked:
        yield f"{each.path}: {_summary(each.findings)}{each.unread}"
    total = _summary([finding for each in checked for finding in each.findings])
    yield f"{len(checked)} gateways: {total}; {_verdict(checked, fleet)}"


def _verdict(checked: Sequence[_Checked], fleet: FleetResult) -> str:
    if unread := [str(each.path) for each in checked if each.configuration is None]:
        return f"nothing is proven with {', '.join(unread)} before the errors there are mended"
    if fleet.unidentified:
        return (
            f"{fleet.unidentified} of {fleet.endpoints} endpoints have no `broker_id`: cycles and"
            " doubles through their brokers are not excluded"
        )
    if fleet.proven:
        doubt = ", which findings doubt" if fleet.doubted else ""
        return (
            f"given these `broker_id`s{doubt}, no message circles, and none is carried twice from"
            " one broker to another"
        )
    return f"all {fleet.endpoints} endpoints have a `broker_id`"


def _route_lines(route: Route, configuration: Configuration) -> Iterator[str]:
    def hidden(text: str) -> str:
        return configuration.hidden.hide(text, ("routes", route.name))

    source = hidden(route.source_text)
    yield f"{route.name}: {route.endpoint} ({route.dialect.name}) {source}"
    for target in route.targets:
        template = hidden(target.template.text) if target.template else "the same name"
        yield f"  -> {target.endpoint} ({target.system}) {template}"
        mode = GUARANTEES[effective_mode(route, target, configuration)]
        if target.thin is not None:
            mode = f"not every message: {target.thin}, and these {mode}"
        lost = ", ".join(lost_fields(route, target, configuration))
        window = repeat_window(route, target, configuration)
        once = f", and once within {window:g} s" if window else ""
        yield f"     {mode}{once}" + (f"; cannot cross: {lost}" if lost else "")
        if isinstance(target.partition, int):
            yield f"     in order: all of them go to partition {target.partition}"
        elif target.partition is not None:
            names = ", ".join(f"{{{each}}}" for each in dict.fromkeys(target.partition.names))
            yield f"     in order for each text of `partition` (by {names})"


def _summary(findings: Sequence[ConfigError]) -> str:
    counts = Counter(finding.severity for finding in findings)
    words = [counted(counts[each], each) for each in ("error", "warning", "note") if counts[each]]
    return ", ".join(words) or "no findings"


def _line(finding: ConfigError) -> str:
    """Return a finding with its severity, so that an error is found among notes."""
    tail = f"; {finding.hint}" if finding.hint else ""
    where = f"{finding.path}:{finding.line}:{finding.column}"
    return f"{where}: {finding.severity}: {finding.reason}{tail}"


def _as_text(findings: Sequence[ConfigError]) -> None:
    for finding in findings:
        print_words(_line(finding))


def _as_grouped_text(findings: Sequence[ConfigError]) -> None:
    """Print each finding, of many notes about one file by one rule only the first, in full."""
    notes: dict[tuple[str, str], list[ConfigError]] = {}
    for each in findings:
        if each.severity == "note":
            notes.setdefault((each.path, each.rule), []).append(each)
    for each in findings:
        of_rule = notes.get((each.path, each.rule), [])
        if each.severity != "note" or len(of_rule) < MANY:
            print_words(_line(each))
        elif each is of_rule[0]:
            print_words(_line(each))
            lines = ", ".join(map(str, dict.fromkeys(other.line for other in of_rule[1:])))
            more = counted(len(of_rule) - 1, "more note")
            print_words(f"{each.path}: {more} of the rule {each.rule}, at {lines}; see --all")


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
