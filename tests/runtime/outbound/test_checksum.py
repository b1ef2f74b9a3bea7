"""The checksum of the spool's rows: every changed bit is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import SpoolError
from gateway.model.dead_letter_rule import SPOOL_DAMAGED
from gateway.model.message import Headers, Message
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.outbound.dead_letters import from_row, to_row
from gateway.runtime.outbound.spool_codec import check, checksum, pack_batch, unpack_batch

MESSAGE = Message("a/b", b"payload", Headers(properties={"k": "v"}))
COLUMNS = (1, "target", 2, 1)
LETTER = DeadLetter(
    0, 1, b"i" * 16, "route", "in", "a", "out", "out", "no", "because", 2, MESSAGE
)  # fmt: skip


def test_every_changed_bit_is_found() -> None:
    body = pack_batch([MESSAGE], [])
    stored = checksum(body, COLUMNS)
    check(body, COLUMNS, stored)

    for bit in range(len(body) * 8):
        changed = bytearray(body)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SpoolError, match="checksum"):
            check(bytes(changed), COLUMNS, stored)


@pytest.mark.parametrize("columns", [(3, *COLUMNS[1:]), (1, "other", 2, 1), (1, "target", 2, 5)])
def test_a_changed_column_is_found(columns: tuple[object, ...]) -> None:
    with pytest.raises(SpoolError, match="checksum"):
        check(b"body", columns, checksum(b"body", COLUMNS))


def test_a_changed_dead_letter_is_found() -> None:
    row = to_row(LETTER, 7)
    assert from_row(row).message == MESSAGE

    for at, changed in ((7, "other"), (3, "another"), (12, row[12][:-1] + b"?")):
        with pytest.raises(SpoolError, match="checksum"):
            from_row([*row[:at], changed, *row[at + 1 :]])


def test_a_damaged_row_is_not_read_from_the_dead_letters() -> None:
    raw = pack_batch([MESSAGE], [])
    letter = replace(LETTER, rule=SPOOL_DAMAGED, message=Message("", raw))
    row = to_row(letter, 7)

    assert row[12].endswith(raw)
    with pytest.raises(SpoolError):
        from_row(row)
    with pytest.raises(SpoolError):
        unpack_batch(row[12])
