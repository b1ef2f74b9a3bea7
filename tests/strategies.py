"""Hypothesis strategies: names and subscriptions that look for trouble."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.dialects.rules import SEPARATOR, legal_name, legal_pattern

PIECES = [
    *"ab%$_#+*>.,/~- \0é漢",
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
    "red",
    "orders",
]
WILD = ["*", ">", "+", "#", "...", "a*", "*a", "b*z", "%*", "%2*", "*E", "**", "a**"]
FITS = 127  # no limit is near
LONG = st.integers(1, 270).map(lambda size: "n" * size)


def _without(chars: str) -> list[str]:
    return [piece for piece in PIECES if not set(piece) & set(chars)]


FORBIDDEN = {
    "ems": "*>.",
    "rv": "*>.",
    "mqtt": "+#/\0",
    "ibm": "/",
    "smf": "/\0",
    "yami4": ".,\0",
    "smartsockets": "*/",
}


def levels(system: str) -> st.SearchStrategy[str]:
    """One part of a name, mostly legal."""
    pieces = st.sampled_from(_without(FORBIDDEN[system]))
    text = st.lists(pieces, max_size=4).map("".join)
    least = 0 if system in {"mqtt", "ibm", "smf", "yami4"} else 1
    return st.one_of(text, text, text, text, LONG).filter(lambda level: len(level) >= least)


def names(system: str) -> st.SearchStrategy[str]:
    """Names that a client of `system` may publish to; of YAMI4 those of one tag."""
    few = st.lists(levels(system), min_size=1, max_size=4)
    deep = st.integers(60, 130).map(lambda size: ["d"] * size)
    lists = st.one_of(few, few, few, few, few, few, deep)
    lead = "/" if system == "smartsockets" else ""
    return lists.map(lambda found: lead + SEPARATOR[system].join(found)).filter(
        lambda name: legal_name(system, name)
    )


def patterns(system: str) -> st.SearchStrategy[str]:
    """Subscriptions of `system`."""
    parts = st.one_of(st.sampled_from(WILD), st.sampled_from(WILD), levels(system))
    lead = "/" if system == "smartsockets" else ""
    return (
        st.lists(parts, min_size=1, max_size=4)
        .map(lambda found: lead + SEPARATOR[system].join(found))
        .filter(lambda text: legal_pattern(system, text) and len(text.encode()) < FITS)
    )


@st.composite
def pairs(draw: st.DrawFn, system: str) -> tuple[str, str]:
    """A subscription and a name that it often, but not always, receives."""
    pattern = draw(patterns(system))
    if draw(st.booleans()) and draw(st.booleans()):
        return pattern, draw(names(system))
    lead = "/" if system == "smartsockets" else ""
    text = pattern.split(",")[0] if system == "yami4" else pattern
    made: list[str] = []
    for part in text.removeprefix(lead).split(SEPARATOR[system]):
        if part in {">", "#", "..."}:
            made += draw(st.lists(levels(system), max_size=3))
        elif part in {"*", "+"}:
            made.append(draw(levels(system)))
        else:
            made.append(part.replace("*", draw(levels(system))))
    name = lead + SEPARATOR[system].join(made)
    if not legal_name(system, name) or (system == "yami4" and "," in name):
        name = draw(names(system))
    return pattern, name
