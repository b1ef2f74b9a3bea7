"""The naming rules once more, written slowly and straight from the vendors' texts.

Nothing here comes from `gateway`: these are the yardsticks that its parsers, matchers and
translations are held against.
"""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase

SYSTEMS = ("ems", "rv", "mqtt", "ibm", "smf", "yami4", "smartsockets")
SEPARATOR = dict(zip(SYSTEMS, "../" + "//./", strict=True))


def legal_name(system: str, name: str, *, made: bool = False) -> bool:
    """Whether a client may publish to `name`; `made` asks for our own tighter EMS length."""
    if any("\ud800" <= char <= "\udfff" for char in name):
        return False
    if system == "yami4":
        return "\0" not in name
    if not name:
        return False
    if system == "smartsockets":
        tokens = name.split("/")
        return (
            tokens[0] == ""
            and len(tokens) > 1
            and all(part and "*" not in part and part != "..." for part in tokens[1:])
        )
    parts = name.split(SEPARATOR[system])
    return {
        "ems": _ems,
        "rv": _rv,
        "mqtt": _mqtt,
        "ibm": _ibm,
        "smf": _smf,
    }[system](name, parts, made)


def _ems(name: str, parts: list[str], made: bool) -> bool:
    room = 249 - math.ceil(53 * len(parts) / 64) if made else 196 if len(parts) == 64 else 249
    return (
        all(parts)
        and not re.search("[*>]", name)
        and name[0] != "$"
        and len(parts) <= 64
        and len(name) <= room
        and all(len(part) <= 127 for part in parts)
    )


def _rv(name: str, parts: list[str], made: bool) -> bool:
    del made
    if name[0] == "_" and not name.startswith(("_INBOX", "_LOCAL")):
        return False
    return (
        all(parts)
        and not re.search("[*>]", name)
        and len(name) <= 255
        and all(len(part) <= 252 for part in parts)
    )


def _mqtt(name: str, parts: list[str], made: bool) -> bool:
    del parts, made
    return not re.search("[+#\0]", name) and len(name.encode()) <= 65_535


def _ibm(name: str, parts: list[str], made: bool) -> bool:
    del name, made
    return "+" not in parts and "#" not in parts


def _smf(name: str, parts: list[str], made: bool) -> bool:
    del made
    return "\0" not in name and len(name.encode()) <= 250 and len(parts) <= 128


def legal_pattern(system: str, text: str) -> bool:  # noqa: PLR0911  # one a system
    """Whether a client may subscribe to `text`; lengths are not looked at."""
    if any("\ud800" <= char <= "\udfff" for char in text) or (not text and system != "yami4"):
        return False
    parts = text.split(SEPARATOR[system])
    match system:
        case "yami4":
            return "\0" not in text
        case "ems" | "rv":
            first = {"ems": ("$", ("$sys", "$TMP$")), "rv": ("_", ("_INBOX", "_LOCAL", "_RV"))}
            char, known = first[system]
            if text.startswith(char) and not text.startswith(known):
                return False
            return all(
                part
                and (part == "*" or "*" not in part)
                and (">" not in part or (part == ">" and at == len(parts) - 1))
                for at, part in enumerate(parts)
            )
        case "mqtt":
            if text.startswith("$share/"):
                return len(parts) > 2 and all(parts[1:2]) and legal_filter(parts[2:], parts[1])
            return legal_filter(parts, "")
        case "ibm":
            return True
        case "smf":
            return "\0" not in text and all(
                part and ("*" not in part or part.index("*") == len(part) - 1) for part in parts
            )
        case _:
            return (
                text[0] == "/"
                and all(parts[1:])
                and all(part != "..." for part in parts[1:-1])
                and len(parts) > 1
            )


def legal_filter(parts: list[str], group: str) -> bool:
    return (
        "+" not in group
        and "#" not in group
        and parts != [""]
        and "\0" not in "/".join(parts)
        and all(
            (part == "+" or "+" not in part)
            and ("#" not in part or (part == "#" and at == len(parts) - 1))
            for at, part in enumerate(parts)
        )
    )


def selects(system: str, pattern: str, name: str) -> bool:
    """Whether the subscription receives the name; both are legal."""
    if system == "yami4":
        return pattern == name or any(
            _tag(one, tag) for one in pattern.split(",") for tag in name.split(",")
        )
    separator = SEPARATOR[system]
    if system == "mqtt" and pattern.startswith("$share/"):
        pattern = pattern.split("/", 2)[2]
    wanted, levels = pattern.split(separator), name.split(separator)
    return {
        "ems": lambda: _rest_last(wanted, levels, "*", ">", "$"),
        "rv": lambda: _rest_last(wanted, levels, "*", ">", ""),
        "mqtt": lambda: _any_rest(wanted, levels, "$"),
        "ibm": lambda: _any_rest(wanted, levels, ""),
        "smf": lambda: _smf_selects(wanted, levels),
        "smartsockets": lambda: _rest_last(wanted, levels, "", "...", "", inner=True),
    }[system]()


def _tag(pattern: str, tag: str) -> bool:
    last = len(pattern) - 1
    pieces = [
        re.escape(char) if char != "*" else ".+" if at == last else "[^.]*+"
        for at, char in enumerate(pattern)
    ]
    return re.fullmatch("".join(pieces), tag, re.DOTALL) is not None


def _rest_last(
    wanted: list[str], levels: list[str], one: str, rest: str, hidden: str, *, inner: bool = False
) -> bool:
    if wanted[0] in {one, rest} and hidden and levels[0].startswith(hidden):
        return False
    if wanted[-1] == rest:
        if len(levels) < len(wanted):
            return False
        wanted, levels = wanted[:-1], levels[: len(wanted) - 1]
    return len(wanted) == len(levels) and all(
        _star(part, level) if inner else part in (one, level)
        for part, level in zip(wanted, levels, strict=True)
    )


def _star(part: str, level: str) -> bool:
    """The shell's star, its other signs taken literally."""
    return fnmatchcase(level, re.sub(r"[\[?]", lambda found: f"[{found[0]}]", part))


def _any_rest(wanted: list[str], levels: list[str], hidden: str) -> bool:
    if hidden and wanted[0] in {"+", "#"} and levels[0].startswith(hidden):
        return False
    if not wanted:
        return not levels
    if wanted[0] == "#":
        return any(_tail(wanted[1:], levels[at:]) for at in range(len(levels) + 1))
    return bool(levels) and wanted[0] in ("+", levels[0]) and _tail(wanted[1:], levels[1:])


def _tail(wanted: list[str], levels: list[str]) -> bool:
    return _any_rest(wanted, levels, "") if wanted else not levels


def _smf_selects(wanted: list[str], levels: list[str]) -> bool:
    if wanted[0] == "*" and levels[0].startswith("$"):
        return False
    if wanted[-1] == ">":
        at = len(wanted) - 1
        if len(levels) <= at or "#P2P" in levels[at:] or (at == 0 and levels[0].startswith("$")):
            return False
        wanted, levels = wanted[:-1], levels[:at]
    return len(wanted) == len(levels) and all(
        level != "#P2P" and level.startswith(part[:-1]) if part.endswith("*") else part == level
        for part, level in zip(wanted, levels, strict=True)
    )
