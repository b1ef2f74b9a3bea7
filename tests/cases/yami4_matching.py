"""Tag lists and the pattern lists that match them, as observed at the YAMI4 broker 1.10.1."""

from __future__ import annotations

from typing import Final

# A pattern list, the tag lists that it matches, the tag lists that it does not match.
_TABLE: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("a", ("a", "x,a"), ("A", "*", "", "ab", "a.")),
    ("a.*", ("a.b", "a.b.c", "a..b"), ("a", "a.", "ab")),
    ("a*", ("ab", "a.b", "a.b.c"), ("a",)),
    ("ab*", ("ab.c", "abd.e", "abc"), ("ab",)),
    ("a.b*", ("a.bcd",), ("a.b",)),
    ("a..b", ("a..b",), ("a.b",)),
    ("a.b", ("a.b",), ("a..b", "a.bc")),
    ("a.*.b", ("a..b", "a.x.b"), ("a.b", "a.x.y.b")),
    ("*..b", ("a..b", "..b"), ("a.b",)),
    ("*.*.b", ("a..b", "x.y.b"), ("a.b",)),
    ("*.b", ("a.b", ".b"), ("b", "x.y.b", "x.b.c")),
    ("*.b.*", ("x.b.c", "x.b.c.d"), ("x.b",)),
    ("a.*.c", ("a..c", "a.x.c"), ("a.c", "a.x.y.c", "a.x.c.d")),
    ("a*c", ("a*c",), ("abc", "ac", "a.c")),  # equal text matches; the star itself never does
    ("a*.c", ("axx.c", "a.c"), ("a.x.c",)),
    ("a.*c", (), ("a.xc",)),
    ("*b.b", (), ("ab.b",)),
    ("*", (".", ".a", " ", "a", "a.b", "*"), ("",)),
    ("**", ("a.b", "**"), ("a",)),
    ("*.*", ("a.b", ".b"), ("a",)),
    ("a.**", ("a.b.c",), ("a.b",)),
    ("b*", (), ("*",)),
    ("", ("", ",", "a,", "a,,b"), ("a",)),
    ("a,", ("", "a"), ("b",)),
    (",a", ("a", ""), ("b",)),
    (",", ("", ","), ("a",)),
    ("b", ("a,b",), ("a, b",)),
    (" b", ("a, b",), ("a,b",)),
    ("x, b", (), ("a,b",)),
    ("c,b", ("a,b",), ("a",)),
    ("a,a", ("a",), ("b",)),
    ("a,b", ("a,b", "b"), ("c",)),
)

ROWS: Final[tuple[tuple[str, str, bool], ...]] = tuple(
    (tags, patterns, expected)
    for patterns, matched, unmatched in _TABLE
    for expected, tag_lists in ((True, matched), (False, unmatched))
    for tags in tag_lists
)
