"""The escape codec of a system that states the characters of its names, and takes no others.

A level is text. Each character that is not in the alphabet is written `_xHH-`: its code in capital
hex digits, two at least (`a b` is `a_x20-b`). Text that already looks like such a token gets one
more `x` behind the `_`, which decoding removes. Everything else stays as it is: a lone `_`, `_x`
and `_x41-`, because `A` is in the alphabet. A level may be empty.

Two levels never become one. A token begins with its only `_` and ends with its only `-`, and
neither stands between them. So tokens cannot overlap, and a text divides in one way into tokens
and other characters. Encoding adds an `x` to a token, turns a character into a token with one `x`,
and keeps other characters. Each step can be undone. Neighbours cannot join to form a token,
because every written token ends where the old piece ended. The first character of a name is mapped
before (`first_character`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import maxunicode

from gateway.dialects.escape import CharacterSearch
from gateway.dialects.first_character import PrefixRule

_ASCII = [*map(chr, range(0x80))]


@dataclass(frozen=True)  # no slots: cached properties need a __dict__
class AlphabetCodec:
    """The spelling of levels in the characters of `alphabet`.

    It is the inside of a regular expression's set. `_`, `-`, `x`, the digits and the capital
    letters are among them.
    """

    alphabet: str
    prefix_rules: tuple[PrefixRule, ...] = ()

    @property
    def rule_characters(self) -> tuple[str, ...]:
        """None: such a character stands in a token."""
        return ()

    @cached_property
    def may_need_decoding(self) -> CharacterSearch:
        """Search a level or a name for the start of a token."""
        return re.compile("_x").search

    @cached_property
    def escaped_characters(self) -> list[str]:
        """Characters that the system cannot spell: those of ASCII."""
        return [char for char in _ASCII if self._other.match(char)]

    def encode(self, levels: Sequence[str]) -> list[str]:
        """Spell canonical levels for this system; every tuple of levels has a spelling."""
        return [self._encodable.sub(self._encoded, each) for each in self._mapped(levels)]

    def decode(self, levels: Sequence[str]) -> list[str]:
        """Return the canonical levels of a legal name of this system."""
        found = [self._token.sub(self._decoded, level) for level in levels]
        return self._mapped(found, outward=False)

    def unspellable(self, levels: Sequence[str]) -> list[str]:
        """Return the characters that this system cannot spell, for people to read."""
        return list(dict.fromkeys(each for level in levels for each in self._other.findall(level)))

    def replaced(self, levels: Sequence[str], char: str) -> list[str]:
        """Spell levels with `char` for everything unspellable: short, and not reversible."""
        return [self._other.sub(char, level) for level in levels]

    def _mapped(self, levels: Sequence[str], *, outward: bool = True) -> list[str]:
        first, *rest = levels
        for rule in self.prefix_rules:
            first = rule.mapped(first, outward=outward)
        return [first, *rest]

    @cached_property
    def _other(self) -> re.Pattern[str]:
        return re.compile(f"[^{self.alphabet}\ud800-\udfff]")  # a surrogate is not a character

    @cached_property
    def _token(self) -> re.Pattern[str]:
        return re.compile("_(x+)([0-9A-F]{2,6})-")

    @cached_property
    def _encodable(self) -> re.Pattern[str]:
        return re.compile(f"{self._token.pattern}|{self._other.pattern}")

    def _encoded(self, found: re.Match[str]) -> str:
        if found[1] is None:
            return f"_x{ord(found[0]):02X}-"
        return found[0] if self._character(found[2]) is None else f"_x{found[0][1:]}"

    def _decoded(self, found: re.Match[str]) -> str:
        char = self._character(found[2])
        if char is None:
            return found[0]
        return char if found[1] == "x" else f"_{found[0][2:]}"

    def _character(self, digits: str) -> str | None:
        """Return the character that a token has these digits for; None when it is not a token."""
        code = int(digits, 16)
        if code > maxunicode or digits != f"{code:02X}":
            return None
        return chr(code) if self._other.match(chr(code)) else None
