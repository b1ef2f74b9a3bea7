"""A parser under fuzz: samples of its input, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

NAME_WORDS: Final = (
    b"*",
    b">",
    b"#",
    b"+",
    b"/",
    b".",
    b"$SYS",
    b"\\u0000",
    b"...",
    b"_RV",
    b"a" * 300,
    b"*/" * 40,
)


@dataclass(frozen=True, slots=True)
class Parser:
    """One parser: only `errors` may leave `parse`. `large` gives inputs near its limits.

    An input has 75 ms of processor time, and `seconds_per_mebibyte` if it is past `MAX_INPUT`.
    """

    name: str
    parse: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    valid: Sequence[bytes]
    words: Sequence[bytes] = ()
    large: Callable[[], Iterator[bytes]] = field(default=lambda: iter(()))
    regressions: Sequence[bytes] = ()  # inputs that once broke a rule
    seconds_per_mebibyte: float = 0.15


def in_two(feed: Callable[[bytes], Sequence[object]], data: bytes) -> None:
    """Feed a stream cut at a place that its content decides."""
    cut = sum(data[-2:]) % (len(data) + 1)
    feed(data[:cut])
    feed(data[cut:])
