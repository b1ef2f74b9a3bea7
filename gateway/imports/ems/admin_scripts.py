"""Parser of scripts of tibemsadmin: the bridges and topics that their commands make.

A command: verb, object, arguments, one line. Read: in the order of the script, so that a bridge
that a later line deletes is none. In a shell script the commands are the lines of its here
documents. All other commands are done at the server (EMS User's Guide, chapter 6).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from gateway.imports.ems.config_files import (
    Bridge,
    BridgeTarget,
    Topic,
    parse_topics,
    split_end,
)
from gateway.imports.source_lines import (
    ContentLine,
    LineError,
    LineStatus,
    OmittedLine,
    ParsedFile,
)

STAYS: Final = "the EMS server has done it"
_VERBS: Final = frozenset(
    {
        "add",
        "addprop",
        "autocommit",
        "bye",
        "commit",
        "compact",
        "connect",
        "create",
        "delete",
        "disconnect",
        "echo",
        "end",
        "exit",
        "grant",
        "help",
        "info",
        "jaci",
        "purge",
        "q",
        "quit",
        "remove",
        "removeprop",
        "resume",
        "revoke",
        "rotatelog",
        "set",
        "setprop",
        "show",
        "shutdown",
        "suspend",
        "time",
        "timeout",
        "transaction",
        "updatecrl",
        "whoami",
        "y",
        "yes",
        "n",
        "no",
    }
)
_IS_SCRIPT: Final = re.compile(
    r"(create|delete|addprop|setprop)\s+(bridge|topic|queue|jndiname|durable)\s", re.IGNORECASE
)
_BRIDGE: Final = re.compile(r"(create|delete)\s+bridge\s+(.*)", re.IGNORECASE)
_TOPIC: Final = re.compile(r"(create|addprop|setprop)\s+topic\s+(.*)", re.IGNORECASE)
_ARGUMENT: Final = re.compile(
    r"""(?P<key>source|target|selector)\s*=\s*
        (?P<value>(?:(?:topic|queue)\s*:\s*)?"[^"]*"|[^\s"]+)\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_BEGINS_HERE: Final = re.compile(r"<<-?\s*['\"]?(\w+)")


@dataclass(frozen=True, slots=True)
class Script:
    """The bridges and topics that a script makes, and the lines that make neither."""

    bridges: tuple[Bridge, ...]
    topics: tuple[Topic, ...]
    omitted: tuple[OmittedLine, ...]


def is_script(parsed: ParsedFile) -> bool:
    """Return whether a line is a command of tibemsadmin."""
    return any(_IS_SCRIPT.match(line.text) for line in parsed.lines)


def parse_script(parsed: ParsedFile) -> Script:
    bridges: dict[tuple[str, str, str, str], list[Bridge]] = {}
    topics: list[Topic] = []
    omitted: list[OmittedLine] = []
    for line, is_command in _commands(parsed):
        verb = line.text.split()[0]
        try:
            if not is_command:
                omitted.append(_stays(line, "this line", "it is a line of the shell"))
            elif found := _BRIDGE.fullmatch(line.text):
                bridge = _bridge(line, found[2])
                if found[1].lower() == "create":
                    bridges.setdefault(_ends(bridge), []).append(bridge)
                else:
                    bridges.pop(_ends(bridge), None)
                    omitted.append(_stays(line, "this command", STAYS))
            elif found := _TOPIC.fullmatch(line.text):
                read, more = parse_topics(ParsedFile((replace(line, text=found[2]),)))
                topics += read
                omitted += more
            elif verb.lower() in _VERBS:
                omitted.append(_stays(line, f"command {verb.lower()!r}", STAYS))
            else:
                omitted.append(line.omitted("this line", "it is no command of tibemsadmin"))
        except LineError as error:
            omitted.append(line.omitted(error.item, error.reason))
    made = sorted(chain.from_iterable(bridges.values()), key=lambda each: each.location)
    return Script(tuple(made), tuple(topics), tuple(omitted))


def _commands(parsed: ParsedFile) -> Iterator[tuple[ContentLine, bool]]:
    """Yield each line, and whether it is a command: in a shell script, one of a here document."""
    is_shell = any(_BEGINS_HERE.search(line.text) for line in parsed.lines)
    end = ""
    for line in parsed.lines:
        if end and line.text.strip() == end:
            end = ""
            yield line, False
        else:
            yield line, bool(end) or not is_shell
            begin = _BEGINS_HERE.search(line.text) if is_shell and not end else None
            end = begin[1] if begin else end


def _stays(line: ContentLine, item: str, reason: str) -> OmittedLine:
    return OmittedLine(line.location, item, reason, LineStatus.STAYS_AT_BROKER)


def _bridge(line: ContentLine, text: str) -> Bridge:
    """Read `source=TYPE:NAME target=TYPE:NAME [selector="..."]`, in any order.

    Raises:
        LineError: it reads otherwise.
    """
    values: dict[str, str] = {}
    at = 0
    while found := _ARGUMENT.match(text, at):
        values[found["key"].lower()] = found["value"]
        at = found.end()
    source, target = (split_end(values.get(key, "")) for key in ("source", "target"))
    if at < len(text) or source is None or target is None:
        reason = (
            "it does not read source=TYPE:NAME target=TYPE:NAME, with or without"
            ' selector="...", where TYPE is topic or queue'
        )
        raise LineError("this bridge", reason)
    selector = values.get("selector", "").removeprefix('"').removesuffix('"').strip()
    end = BridgeTarget(line.location, *target, selector, line.comments)
    return Bridge(line.location, *source, (end,))


def _ends(bridge: Bridge) -> tuple[str, str, str, str]:
    target = bridge.targets[0]
    return bridge.kind, bridge.name, target.kind, target.name
