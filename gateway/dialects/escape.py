"""The escape alphabet: a reversible spelling for levels that a system cannot spell.

A character that a system cannot spell is written `%HH`, its code in two capital hex digits. A
whole level that a system cannot spell is written `%`, the code of its first character and the
rest; an empty level is written `%-`. Text that already looks like such a token gets one more `25`
behind the `%`, which decoding removes. Everything else stays as it is, including a lone `%` and
the tokens of another system.

Two levels never become one. No escaped character is a `%`, a hex digit or a `-`, and a token
contains exactly one `%`, so tokens cannot overlap and a text divides in one way into tokens,
escaped characters and other characters. Encoding adds `25` to a token, turns an escaped character
into a token without `25`, and keeps other characters. Each step can be undone. Neighbours cannot
join to form a token, because every written token ends where the old piece ended. Encoding applies
three such steps in order: first character of the name (`first_character`), characters, whole
level.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from gateway.dialects.first_character import PrefixRule

MAX_SHORT_NAME = 32  # levels; of a longer name, each distinct level is converted once
_MAX_SHORT_TEXT = 256  # characters; a longer text is first asked for each character
EMPTY_LEVEL_CODE = "-"

CharacterSearch: TypeAlias = "Callable[[str], re.Match[str] | None]"


class LevelCodec(Protocol):
    """The spelling of levels in one system, whatever its escape alphabet."""

    @property
    def rule_characters(self) -> tuple[str, ...]:
        """First characters of a name to which a prefix rule can apply."""

    @property
    def may_need_decoding(self) -> CharacterSearch:
        """Search a level or a name for the first character that decoding may change."""

    @property
    def escaped_characters(self) -> list[str]:
        """Canonical characters that this system cannot spell, some of them at least."""

    def encode(self, levels: Sequence[str]) -> list[str]:
        """Spell canonical levels for this system; every tuple of levels has a spelling."""

    def decode(self, levels: Sequence[str]) -> list[str]:
        """Return the canonical levels of a legal name of this system."""

    def unspellable(self, levels: Sequence[str]) -> list[str]:
        """Return the characters and texts that this system cannot spell, for people to read."""

    def replaced(self, levels: Sequence[str], char: str) -> list[str]:
        """Spell levels with `char` for everything unspellable: short, and not reversible."""


@dataclass(frozen=True, slots=True)
class Codec:
    """The spelling of levels in one system; `make_codec` builds it from the dialect."""

    encoded_characters: dict[str, str]  # canonical character to its spelling here
    decoded_characters: dict[str, str]  # the inverse
    level_codes: dict[str, str]  # a whole level that this system cannot spell, and its code
    inbox_tokens: dict[str, str]  # inbox levels and their tokens, in both directions
    prefix_rules: tuple[PrefixRule, ...]
    rule_characters: tuple[str, ...]  # first characters to which a prefix rule can apply
    encodable: re.Pattern[str]  # a character or token that encoding changes, as a group
    decodable: re.Pattern[str]  # a character or token that decoding changes, as a group
    level_token: re.Pattern[str]  # the token of a whole level
    may_need_encoding: Callable[[str], bool]  # of a level
    may_need_decoding: CharacterSearch  # of a level or a name
    token_start: re.Pattern[str]  # the end of a text that may be the start of a token
    token_end: re.Pattern[str]  # the start of a text that may be the end of a token

    def encode(self, levels: Sequence[str]) -> list[str]:
        """Spell canonical levels for this system; every tuple of levels has a spelling."""
        found = _convert_each(levels, self.may_need_encoding, self._encode)
        if self.prefix_rules:
            mapped = self._map_first(levels[0], outward=True)
            if mapped != levels[0]:
                found[0] = self._encode(mapped)
        return found

    def decode(self, levels: Sequence[str]) -> list[str]:
        """Return the canonical levels of a legal name of this system."""
        found = _convert_each(levels, self.may_need_decoding, self._decode)
        if self.prefix_rules:
            found[0] = self._map_first(found[0], outward=False)
        return found

    def unspellable(self, levels: Sequence[str]) -> list[str]:
        """Return the characters and texts that this system cannot spell, for people to read."""
        found = (each[0] for level in levels for each in self.encodable.finditer(level))
        lost = [each for each in found if self.encoded_characters.get(each, "%").startswith("%")]
        whole = (*self.level_codes, *self.inbox_tokens)
        lost += [level for level in levels if level in whole]
        if self._map_first(levels[0], outward=True) != levels[0]:
            lost.append(levels[0][0])
        return list(dict.fromkeys(lost))

    def replaced(self, levels: Sequence[str], char: str) -> list[str]:
        """Spell levels with `char` for everything unspellable: short, and not reversible."""
        first, *rest = levels
        mapped = self._map_first(first, outward=True)
        if mapped != first:
            first = mapped if first.startswith("%") else char + first[1:]
        found = [
            self.encodable.sub(lambda m: self._replace(m, char), text) for text in (first, *rest)
        ]
        lost = (*self.level_codes, *self.inbox_tokens)
        return [char + text[1:] if text in lost else text for text in found]

    def _replace(self, found: re.Match[str], char: str) -> str:
        here = self.encoded_characters.get(found[0], found[0])
        return char if found[0] in self.encoded_characters and here.startswith("%") else here

    @property
    def escaped_characters(self) -> list[str]:
        """The canonical characters that this system cannot spell."""
        return [char for char, here in self.encoded_characters.items() if here.startswith("%")]

    @property
    def level_pairs(self) -> list[tuple[str, str]]:
        """Whole levels with a spelling of their own: the canonical form and the form here."""
        codes = [
            (self._decode_characters(text), "%" + code) for text, code in self.level_codes.items()
        ]
        return codes + list(self.inbox_tokens.items())

    def convert_part(self, text: str, *, first: bool, outward: bool) -> str:
        """Encode (`outward`) or decode a part of a level; `first` for the start of the name."""
        part = text if outward else self._decode_characters(text)
        mapped = self._map_first(part, outward=outward) if first else part
        return self._encode_characters(mapped) if outward else mapped

    def _encode(self, level: str) -> str:
        text = self._encode_characters(level)
        if text in self.level_codes:
            return "%" + self.level_codes[text]
        if self.level_token.fullmatch(text):
            return "%25" + text[1:]
        return self.inbox_tokens.get(text, text)

    def _decode(self, level: str) -> str:
        text = self.inbox_tokens.get(level, level)
        if self.level_token.fullmatch(text):
            found = (whole for whole, code in self.level_codes.items() if text == "%" + code)
            text = next(found, "%" + text[3:])
        return self._decode_characters(text)

    def _encode_characters(self, text: str) -> str:
        known, parts = self.encoded_characters, self.encodable.split(text)
        parts[1::2] = [known.get(found) or "%25" + found[1:] for found in parts[1::2]]
        return "".join(parts)

    def _decode_characters(self, text: str) -> str:
        known, parts = self.decoded_characters, self.decodable.split(text)
        parts[1::2] = [known.get(found) or "%" + found[3:] for found in parts[1::2]]
        return "".join(parts)

    def _map_first(self, level: str, *, outward: bool) -> str:
        if level[:1] in self.rule_characters:
            for rule in self.prefix_rules:
                level = rule.mapped(level, outward=outward)
        return level


def make_codec(
    forbidden: str,
    swapped_characters: str,
    reserved_levels: tuple[str, ...],
    inbox_levels: tuple[str, ...],
    prefix_rules: tuple[PrefixRule, ...],
) -> Codec:
    """Build the codec of a system.

    A level of the system contains no `forbidden` character and equals none of `reserved_levels`.
    The two `swapped_characters` change places. The canonical form of an inbox level is its token,
    so no ordinary level of another system becomes an inbox.
    """
    swap = dict(zip(swapped_characters, reversed(swapped_characters), strict=True))
    tokens = {swap.get(char, char): f"%{ord(swap.get(char, char)):02X}" for char in forbidden}
    encoded = {there: here for there, here in swap.items() if here not in forbidden} | tokens
    codes = {text: _code(text) for text in reserved_levels}
    inbox_codes = [(text, _code(text)) for text in inbox_levels]
    inbox_pairs = [(text, "%" + code) for text, code in inbox_codes]
    token = _token(code[1:] for code in tokens.values())
    ends = [code[1:] for code in tokens.values()]
    ends += [f"{ord(rule.character):02X}" for rule in prefix_rules]
    digits = "".join(sorted({"2", *(code[0] for code in ends)}))
    tails = "|".join([*ends, *(code[1] for code in ends)])
    level_codes = "|".join(map(re.escape, [*codes.values(), *(code for _, code in inbox_codes)]))
    whole = frozenset((*codes, *inbox_levels))
    has_encodable = character_search([*encoded, "%"])
    # Branches that begin with a character each, so that the search skips all others at once.
    encodable, decodable = ("|".join([*map(re.escape, each), token]) for each in (encoded, swap))
    return Codec(
        encoded_characters=encoded,
        decoded_characters={here: there for there, here in encoded.items()},
        level_codes=codes,
        inbox_tokens=dict(inbox_pairs) | {stand_in: text for text, stand_in in inbox_pairs},
        prefix_rules=prefix_rules,
        rule_characters=("%", *(rule.character for rule in prefix_rules)) if prefix_rules else (),
        encodable=re.compile(f"({encodable})"),
        decodable=re.compile(f"({decodable})"),
        level_token=re.compile(_token(codes.values()) if codes else r"(?!)"),
        may_need_encoding=partial(_may_need_encoding, whole, has_encodable),
        may_need_decoding=character_search(
            ["%", *swapped_characters, *(text[0] for text in inbox_levels)]
        ),
        token_start=re.compile(rf"%(?:25)*[{digits}]?\Z"),
        token_end=re.compile(
            rf"5?(?:25)*(?:{tails}{rf'|(?:{level_codes})' + chr(92) + 'Z' if level_codes else ''})"
        ),
    )


def character_search(characters: Iterable[str]) -> CharacterSearch:
    """Return a search of a text for its first character among these.

    A long text is asked for each of them before, which takes a twentieth of the time when it has
    none.
    """
    chars = "".join(characters)
    return partial(_search, re.compile(f"[{re.escape(chars)}]" if chars else "(?!)").search, chars)


def _search(search: CharacterSearch, characters: str, text: str) -> re.Match[str] | None:
    if len(text) > _MAX_SHORT_TEXT and not any(map(text.__contains__, characters)):
        return None
    return search(text)


def _may_need_encoding(whole: frozenset[str], has_encodable: CharacterSearch, level: str) -> bool:
    return level in whole or has_encodable(level) is not None


def _convert_each(
    levels: Sequence[str], is_special: Callable[[str], object], convert: Callable[[str], str]
) -> list[str]:
    """Convert the special levels; in a very deep name, convert each distinct level once."""
    if len(levels) <= MAX_SHORT_NAME:
        return [convert(level) if is_special(level) else level for level in levels]
    known = {level: convert(level) for level in set(levels) if is_special(level)}
    return [known.get(level, level) for level in levels] if known else list(levels)


def _code(text: str) -> str:
    return f"{ord(text[0]):02X}{text[1:]}" if text else EMPTY_LEVEL_CODE


def _token(codes: Iterable[str]) -> str:
    return f"%(?:25)*(?:{'|'.join(map(re.escape, codes))})"
