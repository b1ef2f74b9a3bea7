"""Inputs for a parser: mutations of valid ones, with the extremes that readings of the code found.

Each input has a number, and depends on the seed and its number only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

MAX_INPUT: Final = 16_384  # bytes of a mutated input
MAX_REPEATED: Final = 4_096  # bytes that one mutation adds
_EDGES: Final = (
    0, 1, 2, 4, 5, 12, 127, 128, 255, 256, 4_095, 4_096, 32_767, 32_768, 65_535, 65_536,
    2**24 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1,
)  # fmt: skip
_FIXED: Final = sorted(  # a set of bytes has another order in each process
    {
        edge.to_bytes(width, order)
        for edge in _EDGES
        for width in (1, 2, 4, 8)
        for order in ("big", "little")
        if edge < 256**width
    }
)
_VARIABLE: Final = (
    b"\x80\x01",
    b"\xff\x7f",
    b"\xff\xff\x7f",
    b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\x7f",
)
_INTEGERS: Final = (*_FIXED, *_VARIABLE)  # the latter as MQTT writes them
_WORDS: Final = (
    b"9" * 4_400, b"-" + b"9" * 19, b"1e999", b"NaN", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\xc0\x80",
    b"\xef\xbb\xbf", b"\0", b"\r\n", b"\xe2\x80\xa8", b"[" * 1_500, b'{"a":' * 700, b"(" * 120,
)  # fmt: skip

Change = Callable[[bytearray, int, random.Random], None]


class InputGenerator:
    """The inputs of one parser, from valid ones and the words of its language.

    Mutable: its generator of random numbers is seeded again for each input.
    """

    def __init__(self, valid: Sequence[bytes], words: Sequence[bytes], seed: int) -> None:
        self._valid = valid
        self._words = (*words, *words, *_WORDS)
        self._seed = seed << 32
        self._random = random.Random()  # noqa: S311  # inputs, not secrets
        self._changes: tuple[Change, ...] = (
            self._set_byte, self._set_byte, self._set_integer, self._set_integer,
            self._set_length, self._delete, self._repeat, self._insert_word, self._splice,
        )  # fmt: skip

    def make(self, number: int) -> bytes:
        """Return the input with this number; each twentieth one is random bytes or unchanged."""
        chance = self._random
        chance.seed(self._seed + number)
        start = self._valid[number % len(self._valid)]
        if not number % 20:
            return start if chance.random() < 0.2 else chance.randbytes(int(chance.random() * 400))
        data = bytearray(start)
        for _ in range(1 + int(chance.random() ** 2 * 5)):
            position = int(chance.random() * (len(data) + 1))
            self._changes[int(chance.random() * len(self._changes))](data, position, chance)
        return bytes(data[:MAX_INPUT])

    @staticmethod
    def _set_byte(data: bytearray, position: int, chance: random.Random) -> None:
        data[position : position + 1] = bytes((int(chance.random() * 256),))

    @staticmethod
    def _set_integer(data: bytearray, position: int, chance: random.Random) -> None:
        value = _INTEGERS[int(chance.random() * len(_INTEGERS))]
        data[position : position + len(value)] = value

    @staticmethod
    def _set_length(data: bytearray, position: int, chance: random.Random) -> None:
        """Write a length near that of the rest, which a check could miss by one."""
        width = 1 << int(chance.random() * 3)
        size = len(data) - position + int(chance.random() * 9) - 4 - (width >> 1)
        value = (size % 256**width).to_bytes(width, "big" if chance.random() < 0.7 else "little")
        data[position : position + width] = value

    @staticmethod
    def _delete(data: bytearray, position: int, chance: random.Random) -> None:
        del data[position : position + 1 + int(chance.random() ** 3 * len(data))]

    @staticmethod
    def _repeat(data: bytearray, position: int, chance: random.Random) -> None:
        """Repeat a part: many properties, many elements, deep nesting."""
        part = data[position : position + 1 + int(chance.random() ** 2 * 40)]
        if part:
            times = 1 + int(chance.random() ** 4 * (MAX_REPEATED // len(part)))
            data[position:position] = part * times

    def _insert_word(self, data: bytearray, position: int, chance: random.Random) -> None:
        word = self._words[int(chance.random() * len(self._words))]
        times = 1 if chance.random() < 0.9 else 1 + int(chance.random() * 100)
        data[position:position] = (word * times)[:MAX_REPEATED]

    def _splice(self, data: bytearray, position: int, chance: random.Random) -> None:
        other = self._valid[int(chance.random() * len(self._valid))]
        data[position:] = other[int(chance.random() * len(other)) :]


def around(*limits: int) -> list[int]:
    """Return each limit with its neighbours."""
    return list(chain.from_iterable((each - 1, each, each + 1) for each in limits))
