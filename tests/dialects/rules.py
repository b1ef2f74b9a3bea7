"""The naming rules a second time, written plainly from the vendors' texts.

Nothing here comes from `gateway`. Tests compare the parsers, matchers and translations of the
gateway with these functions; `tests/systems.py` has the table of them by system.

`legal_*_name(name, made)`: whether a client may publish to `name`, which is not empty; `made` asks
for the stricter EMS limit of names that the gateway makes. `legal_*_pattern(text)`: whether a
client may subscribe to `text`, which is not empty, apart from its length. `*_selects(pattern,
name)`: whether the subscription receives the name, both legal.
"""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase

KAFKA_FORBIDDEN = re.sub("[A-Za-z0-9._-]", "", "".join(map(chr, range(128)))) + "é漢\U0001f600"
NATS_FORBIDDEN = "".join(map(chr, range(33))) + "\x7f"


def legal_ems_name(name: str, made: bool) -> bool:
    parts = name.split(".")
    room = 249 - math.ceil(53 * len(parts) / 64) if made else 196 if len(parts) == 64 else 249
    return (
        all(parts)
        and not re.search("[*>]", name)
        and name[0] != "$"
        and len(parts) <= 64
        and len(name) <= room
        and all(len(part) <= 127 for part in parts)
    )


def legal_rv_name(name: str, made: bool) -> bool:
    del made
    if name[0] == "_" and not name.startswith(("_INBOX", "_LOCAL")):
        return False
    parts = name.split(".")
    return (
        all(parts)
        and not re.search("[*>]", name)
        and len(name) <= 255
        and all(len(part) <= 252 for part in parts)
    )


def legal_mqtt_name(name: str, made: bool) -> bool:
    del made
    return not re.search("[+#\0]", name) and len(name.encode()) <= 65_535


def legal_ibm_name(name: str, made: bool) -> bool:
    del made
    return not {"+", "#"} & set(name.split("/"))


def legal_smf_name(name: str, made: bool) -> bool:
    del made
    return "\0" not in name and len(name.encode()) <= 250 and name.count("/") < 128


def legal_yami4_name(name: str, made: bool) -> bool:
    del made
    return "\0" not in name


def legal_smartsockets_name(name: str, made: bool) -> bool:
    del made
    lead, *tokens = name.split("/")
    return (
        lead == ""
        and bool(tokens)
        and all(part and "*" not in part and part != "..." for part in tokens)
    )


def legal_nats_name(name: str, made: bool) -> bool:
    del made
    parts = name.split(".")
    return (
        all(parts)
        and not {"*", ">"} & set(parts)
        and not set(NATS_FORBIDDEN) & set(name)
        and len(name.encode()) <= 4_000
        and not name.startswith(("$", "_INBOX"))
    )


def legal_rabbitmq_name(name: str, made: bool) -> bool:
    del made
    return not {"*", "#"} & set(name.split(".")) and len(name.encode()) <= 255


def legal_kafka_name(name: str, made: bool) -> bool:
    """A topic, or a topic, a colon and a key; no other level reads as a colon."""
    del made
    topic, _, key = name.partition(":")
    return (
        re.fullmatch("[A-Za-z0-9._-]{1,249}", topic) is not None
        and topic not in {".", "..", "__consumer_offsets", "__transaction_state"}
        and topic not in {"__share_group_state", "__cluster_metadata"}
        and "_x3A-" not in topic.split(".")
        and ":" not in key.split(".")
    )


def legal_ems_pattern(text: str) -> bool:
    known = text.startswith(("$sys", "$TMP$"))
    return (known or text[0] != "$") and legal_dotted_pattern(text)


def legal_rv_pattern(text: str) -> bool:
    known = text.startswith(("_INBOX", "_LOCAL", "_RV"))
    return (known or text[0] != "_") and legal_dotted_pattern(text)


def legal_dotted_pattern(text: str) -> bool:
    """`*` fills an element, `>` the last one; no element is empty."""
    parts = text.split(".")
    return all(
        part
        and (part == "*" or "*" not in part)
        and (">" not in part or (part == ">" and at == len(parts) - 1))
        for at, part in enumerate(parts)
    )


def legal_mqtt_pattern(text: str) -> bool:
    parts = text.split("/")
    if text.startswith("$share/"):
        return len(parts) > 2 and all(parts[1:2]) and legal_filter(parts[2:], parts[1])
    return legal_filter(parts, "")


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


def legal_ibm_pattern(text: str) -> bool:
    del text
    return True


def legal_smf_pattern(text: str) -> bool:
    return "\0" not in text and all(
        part and ("*" not in part or part.index("*") == len(part) - 1) for part in text.split("/")
    )


def legal_yami4_pattern(text: str) -> bool:
    return "\0" not in text


def legal_smartsockets_pattern(text: str) -> bool:
    lead, *tokens = text.split("/")
    return lead == "" and bool(tokens) and all(tokens) and "..." not in tokens[:-1]


def legal_nats_pattern(text: str) -> bool:
    parts = text.split(".")
    return all(parts) and ">" not in parts[:-1] and not set(NATS_FORBIDDEN) & set(text)


def legal_rabbitmq_pattern(text: str) -> bool:
    del text
    return True


def legal_kafka_pattern(text: str) -> bool:
    topic, _, key = text.partition(":")
    levels = topic.split(".")
    return (
        topic != ""
        and all(level in {"*", ">"} or re.fullmatch("[A-Za-z0-9_-]*", level) for level in levels)
        and ">" not in levels[:-1]
        and "_x3A-" not in levels
        and not {":", ">"} & set(key.split(".")[:-1])
        and key.split(".")[-1] != ":"
    )


def ems_selects(pattern: str, name: str) -> bool:
    return dotted_selects(pattern, name, hidden="$")


def rv_selects(pattern: str, name: str) -> bool:
    return dotted_selects(pattern, name)


def dotted_selects(pattern: str, name: str, *, hidden: str = "") -> bool:
    """`*` takes one element, a last `>` one or more."""
    return _rest_last(pattern.split("."), name.split("."), "*", ">", hidden)


def mqtt_selects(pattern: str, name: str) -> bool:
    if pattern.startswith("$share/"):
        pattern = pattern.split("/", 2)[2]
    return _any_rest(pattern.split("/"), name.split("/"), "$")


def ibm_selects(pattern: str, name: str) -> bool:
    return _any_rest(pattern.split("/"), name.split("/"), "")


def smf_selects(pattern: str, name: str) -> bool:
    wanted, levels = pattern.split("/"), name.split("/")
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


def yami4_selects(pattern: str, name: str) -> bool:
    return pattern == name or any(
        _tag_selects(one, tag) for one in pattern.split(",") for tag in name.split(",")
    )


def smartsockets_selects(pattern: str, name: str) -> bool:
    return _rest_last(pattern.split("/"), name.split("/"), "", "...", "", inner=True)


def nats_selects(pattern: str, name: str) -> bool:
    return dotted_selects(pattern, name)


def rabbitmq_selects(pattern: str, name: str) -> bool:
    """By the sets of positions that each word of the pattern can end at."""
    words, ends = name.split("."), {0}
    for part in pattern.split("."):
        if part == "#":
            ends = set(range(min(ends), len(words) + 1)) if ends else ends
        else:
            ends = {at + 1 for at in ends if at < len(words) and part in ("*", words[at])}
    return len(words) in ends


def kafka_selects(pattern: str, name: str) -> bool:
    """A pattern without a colon takes any key and none; `>` of a key takes no level too."""
    topic, colon, key = pattern.partition(":")
    its_topic, its_colon, its_key = name.partition(":")
    if not dotted_selects(topic, its_topic):
        return False
    if not colon:
        return True
    wanted, levels = (text.split(".") if text else [] for text in (key, its_key))
    if wanted[-1:] == [">"]:
        wanted, levels = wanted[:-1], levels[: len(wanted) - 1]
    return (
        bool(its_colon)
        and len(wanted) == len(levels)
        and all(part in ("*", level) for part, level in zip(wanted, levels, strict=True))
    )


def _tag_selects(pattern: str, tag: str) -> bool:
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
        _star_selects(part, level) if inner else part in (one, level)
        for part, level in zip(wanted, levels, strict=True)
    )


def _star_selects(part: str, level: str) -> bool:
    """The star of a shell; its other special characters are literal."""
    return fnmatchcase(level, re.sub(r"[\[?]", lambda found: f"[{found[0]}]", part))


def _any_rest(wanted: list[str], levels: list[str], hidden: str) -> bool:
    if hidden and wanted[0] in {"+", "#"} and levels[0].startswith(hidden):
        return False
    if not wanted:
        return not levels
    if wanted[0] == "#":
        return any(_tail_selects(wanted[1:], levels[at:]) for at in range(len(levels) + 1))
    return bool(levels) and wanted[0] in ("+", levels[0]) and _tail_selects(wanted[1:], levels[1:])


def _tail_selects(wanted: list[str], levels: list[str]) -> bool:
    return _any_rest(wanted, levels, "") if wanted else not levels
