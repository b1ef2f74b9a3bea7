"""The escape alphabet: how a level that a system cannot spell is written there, and read back.

A character without a place in a system is written `%HH`, its code in two capital hex digits; a
whole level without a place is `%` and the code of its first character and the rest, an empty one
`%-`. What already looks like such a token gets one more `25` behind the `%`, on the way back it
loses one. Everything else, a lone `%` or a token of another system included, stays as it is.

Why two levels never become one: no escaped character is a `%`, a hex digit or a `-`, and a token
holds one `%` only, so tokens cannot overlap and a text divides in one way into tokens, escaped
characters and others. Writing adds `25` to the first, makes the second a token without `25` and
leaves the third; each of these steps can be undone, and neighbours cannot join to a token because
every written token ends where the old piece ended. Three such steps follow each other: first
character of the name (`first`), characters, whole level.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gateway.dialects.first_character import FirstRule

FEW = 32
EMPTY = "-"  # the code of an empty level


@dataclass(frozen=True, slots=True)
class Codec:
    """One system's spelling of levels; `codec` makes it from the facts."""

    spelled: dict[str, str]  # a character in the middle, and what stands for it here
    meant: dict[str, str]  # the way back
    codes: dict[str, str]  # a whole level without a place here, and its code
    swapped: dict[str, str]  # levels of the system's own and their stand-ins, both ways
    first: tuple[FirstRule, ...]
    first_characters: tuple[str, ...]  # with which a level may be another one as a name's first
    to_spell: re.Pattern[str]
    to_read: re.Pattern[str]
    whole_token: re.Pattern[str]
    awkward: re.Pattern[str]
    suspect: re.Pattern[str]
    token_start: re.Pattern[str]  # a text's end that may be the start of a token
    token_end: re.Pattern[str]  # a text's start that may be the end of one

    def encode(self, levels: Sequence[str]) -> list[str]:
        """Levels of the middle as this system spells them; every tuple has a spelling."""
        found = _each(levels, self.awkward.search, self._encode)
        if self.first:
            turned = self._turn(levels[0], outward=True)
            if turned != levels[0]:
                found[0] = self._encode(turned)
        return found

    def decode(self, levels: Sequence[str]) -> list[str]:
        """Levels of a legal name of this system as the middle has them."""
        found = _each(levels, self.suspect.search, self._decode)
        if self.first:
            found[0] = self._turn(found[0], outward=False)
        return found

    def lacking(self, levels: Sequence[str]) -> list[str]:
        """The texts and characters that have no place here, for a person to read."""
        lost = [
            found[0]
            for level in levels
            for found in self.to_spell.finditer(level)
            if found[0] not in self.spelled or self.spelled[found[0]].startswith("%")
        ]
        lost += [level for level in levels if level in self.codes or level in self.swapped]
        if self._turn(levels[0], outward=True) != levels[0]:
            lost.append(levels[0][0])
        return list(dict.fromkeys(lost))

    def replaced(self, levels: Sequence[str], char: str) -> list[str]:
        """Levels spelled with `char` for all that has no place here: short, and not reversible."""
        first, *rest = levels
        turned = self._turn(first, outward=True)
        if turned != first:
            first = turned if first.startswith("%") else char + first[1:]
        found = [self.to_spell.sub(lambda m: self._plain(m, char), text) for text in (first, *rest)]
        lost = (*self.codes, *self.swapped)
        return [char + text[1:] if text in lost else text for text in found]

    def _plain(self, found: re.Match[str], char: str) -> str:
        here = self.spelled.get(found[0], found[0])
        return char if found[0] in self.spelled and here.startswith("%") else here

    @property
    def whole_pairs(self) -> list[tuple[str, str]]:
        """Whole levels with a spelling of their own: in the middle, and here."""
        codes = [
            (self.to_read.sub(self._read, text), "%" + code) for text, code in self.codes.items()
        ]
        return codes + list(self.swapped.items())

    def encode_part(self, text: str, *, first: bool) -> str:
        """A part of a level, of the name's first one and its start when `first`."""
        return self.to_spell.sub(self._spell, self._turn(text, outward=True) if first else text)

    def decode_part(self, text: str, *, first: bool) -> str:
        read = self.to_read.sub(self._read, text)
        return self._turn(read, outward=False) if first else read

    def _encode(self, level: str) -> str:
        text = self.to_spell.sub(self._spell, level)
        if text in self.codes:
            return "%" + self.codes[text]
        if self.whole_token.fullmatch(text):
            return "%25" + text[1:]
        return self.swapped.get(text, text)

    def _decode(self, level: str) -> str:
        text = self.swapped.get(level, level)
        if self.whole_token.fullmatch(text):
            text = next(
                (whole for whole, code in self.codes.items() if text == "%" + code),
                "%" + text[3:],
            )
        return self.to_read.sub(self._read, text)

    def _spell(self, found: re.Match[str]) -> str:
        return self.spelled.get(found[0]) or "%25" + found[0][1:]

    def _read(self, found: re.Match[str]) -> str:
        return self.meant.get(found[0]) or "%" + found[0][3:]

    def _turn(self, level: str, *, outward: bool) -> str:
        if level[:1] in self.first_characters:
            for rule in self.first:
                level = rule.turned(level, outward=outward)
        return level


def codec(
    forbidden: str,
    traded: str,
    whole: tuple[str, ...],
    inboxes: tuple[str, ...],
    first: tuple[FirstRule, ...],
) -> Codec:
    """A codec for a system whose levels never hold a `forbidden` character or read a `whole` text.

    Two `traded` characters change places; `inboxes` are levels of its own, which the middle
    knows by their token, so that no ordinary level of another system becomes one.
    """
    trade = {traded[0]: traded[1], traded[1]: traded[0]} if traded else {}
    lost = {trade.get(char, char): f"%{ord(trade.get(char, char)):02X}" for char in forbidden}
    spelled = {there: here for there, here in trade.items() if here not in forbidden} | lost
    codes = {text: _code(text) for text in whole}
    coded = [(text, _code(text)) for text in inboxes]
    pairs = [(text, "%" + code) for text, code in coded]
    token = _token(code[1:] for code in lost.values())
    singles = "".join(map(re.escape, spelled))
    ends = [code[1:] for code in lost.values()] + [f"{ord(rule.char):02X}" for rule in first]
    digits = "".join(sorted({"2", *(code[0] for code in ends)}))
    tails = "|".join([*ends, *(code[1] for code in ends)])
    wholes = "|".join(map(re.escape, [*codes.values(), *(code for _, code in coded)]))
    alone = "|".join(re.escape(text) for text in (*codes, *inboxes))
    return Codec(
        spelled,
        {here: there for there, here in spelled.items()},
        codes,
        dict(pairs) | {stand_in: text for text, stand_in in pairs},
        first,
        ("%", *(rule.char for rule in first)) if first else (),
        re.compile(f"[{singles}]|{token}"),
        re.compile(f"[{''.join(map(re.escape, trade))}]|{token}" if trade else token),
        re.compile(_token(codes.values()) if codes else r"(?!)"),
        re.compile(rf"[{singles}%]|\A(?:{alone})\Z" if codes or inboxes else f"[{singles}%]"),
        re.compile(f"[%{''.join(map(re.escape, traded + ''.join(inboxes)))}]"),
        re.compile(rf"%(?:25)*[{digits}]?\Z"),
        re.compile(rf"5?(?:25)*(?:{tails}{rf'|(?:{wholes})' + chr(92) + 'Z' if wholes else ''})"),
    )


def _each(
    levels: Sequence[str], odd: Callable[[str], object], convert: Callable[[str], str]
) -> list[str]:
    """Every level, the odd ones converted; of very many levels each different one once."""
    if len(levels) <= FEW:
        return [convert(level) if odd(level) else level for level in levels]
    known = {level: convert(level) for level in set(levels) if odd(level)}
    return [known.get(level, level) for level in levels] if known else list(levels)


def _code(text: str) -> str:
    return f"{ord(text[0]):02X}{text[1:]}" if text else EMPTY


def _token(codes: Iterable[str]) -> str:
    return f"%(?:25)*(?:{'|'.join(map(re.escape, codes))})"
