"""Hypothesis strategies for names and subscriptions with difficult content."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.systems import SYSTEMS, legal_name, legal_pattern

PIECES = [
    *"ab%$_#+*>.,/~-: \0é漢",
    "\U0001f600",
    "#P2P",
    "$SYS",
    "$share",
    "$sys",
    "$TMP$",
    "_INBOX",
    "_LOCAL",
    "_RV",
    "...",
    "25",
    "2E",
    "24",
    "%24",
    "%2524",
    "%5FRV",
    "%2E",
    "%252E",
    "%2F",
    "%2A",
    "%23P2P",
    "%-",
    "%25-",
    "%2B",
    "E",
    ":",
    "%3A",
    "_x2E-",
    "_xx2E-",
    "_x3A-",
    "_x5F-",
    "_x",
    "red",
    "orders",
]
WILDCARDS = ["*", ">", "+", "#", "...", "a*", "*a", "b*z", "%*", "%2*", "*E", "**", "a**"]
MAX_PATTERN_BYTES = 127  # below every limit
LONG = st.integers(1, 270).map(lambda size: "n" * size)


def levels(system: str) -> st.SearchStrategy[str]:
    """One level of a name, usually legal."""
    row = SYSTEMS[system]
    unusable = {*row.forbidden, row.separator}
    pieces = st.sampled_from([piece for piece in PIECES if not set(piece) & unusable])
    text = st.lists(pieces, max_size=4).map("".join)
    others = [LONG] if ":" in unusable else [LONG, st.just(":")]  # the boundary of Kafka
    return st.one_of(text, text, text, text, *others).filter(
        lambda level: bool(level) or row.empty_levels
    )


def names(system: str) -> st.SearchStrategy[str]:
    """Names to which a client of `system` may publish, never a list of tags."""
    row = SYSTEMS[system]
    few = st.lists(levels(system), min_size=1, max_size=4)
    deep = st.integers(60, 130).map(lambda size: ["d"] * size)
    lists = st.one_of(few, few, few, few, few, few, deep)
    found = lists.map(lambda found: row.spell(*found))
    if row.keys:
        found = st.one_of(found, st.tuples(found, keys()).map(":".join))
    return found.filter(lambda name: legal_name(system, name))


def keys() -> st.SearchStrategy[str]:
    """The key of a message of Kafka, in any characters."""
    levels = st.lists(st.sampled_from([piece for piece in PIECES if "." not in piece]), max_size=3)
    return st.lists(levels.map("".join), max_size=3).map(".".join)


def patterns(system: str) -> st.SearchStrategy[str]:
    """Subscriptions of `system`."""
    row = SYSTEMS[system]
    wildcards = st.sampled_from(WILDCARDS)
    parts = st.one_of(wildcards, wildcards, levels(system))
    found = st.lists(parts, min_size=1, max_size=4).map(lambda found: row.spell(*found))
    if row.keys:
        keyed = st.lists(st.one_of(st.sampled_from("*>"), keys()), max_size=3).map(".".join)
        found = st.one_of(found, st.tuples(found, keyed).map(":".join))
    return found.filter(
        lambda text: legal_pattern(system, text) and len(text.encode()) < MAX_PATTERN_BYTES
    )


@st.composite
def pairs(draw: st.DrawFn, system: str) -> tuple[str, str]:
    """A subscription and a name that it often, but not always, receives."""
    row = SYSTEMS[system]
    pattern = draw(patterns(system))
    if draw(st.booleans()) and draw(st.booleans()):
        return pattern, draw(names(system))
    text = pattern.split(",")[0] if row.tag_lists else pattern
    text, colon, key = text.partition(":") if row.keys else (text, "", "")
    made: list[str] = []
    for part in text.removeprefix(row.leading).split(row.separator):
        if part in {">", "#", "..."}:
            made += draw(st.lists(levels(system), max_size=3))
        elif part in {"*", "+"}:
            made.append(draw(levels(system)))
        else:
            made.append(part.replace("*", draw(levels(system))))
    name = row.spell(*made)
    if row.keys and (colon or draw(st.booleans())):
        name += f":{key.replace('*', 'b').replace('>', draw(keys()))}"
    if not legal_name(system, name) or (row.tag_lists and "," in name):
        name = draw(names(system))
    return pattern, name
