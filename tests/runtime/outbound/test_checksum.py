"""The checksum of the spool's rows: every changed bit is found."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest

from gateway.errors import SpoolError
from gateway.model.dead_letter_rule import SPOOL_DAMAGED
from gateway.model.message import Headers, Message
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.outbound.dead_letters import COLUMNS as LETTER_COLUMNS
from gateway.runtime.outbound.dead_letters import from_row, to_row
from gateway.runtime.outbound.spool_codec import check, checksum, pack_batch, unpack_batch
from tests.copy_proofs import OTHER_PROOF, PROOF

MESSAGE = Message("a/b", b"payload", Headers(properties={"k": "v"}), PROOF)
COLUMNS = (1, "target", 2, 1)
BODY = LETTER_COLUMNS.index("body")
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


def test_each_message_keeps_its_proof() -> None:
    sent = [replace(MESSAGE, proof=proof) for proof in (PROOF, "", OTHER_PROOF)]

    found, _ = unpack_batch(pack_batch(sent, []))

    assert found == sent
    assert [each.proof for each in found] == [PROOF, "", OTHER_PROOF]
    assert found[0].headers is found[2].headers


@pytest.mark.parametrize(
    ("entry", "proof"),
    [
        pytest.param(["a", b"x", 0], "", id="of-an-earlier-version"),
        pytest.param(["a", b"x", 0, PROOF], PROOF, id="with-a-proof"),
        pytest.param(["a", b"x", 0, 5], "", id="a-number"),
        pytest.param(["a", b"x", 0, "!"], "", id="another-text"),
    ],
)
def test_an_entry_is_read_with_its_proof_or_none(entry: list[object], proof: str) -> None:
    ((found,), _) = unpack_batch(msgpack.packb([[{}], [entry], []]))

    assert (found.address, found.payload, found.proof) == ("a", b"x", proof)


@pytest.mark.parametrize("columns", [(3, *COLUMNS[1:]), (1, "other", 2, 1), (1, "target", 2, 5)])
def test_a_changed_column_is_found(columns: tuple[object, ...]) -> None:
    with pytest.raises(SpoolError, match="checksum"):
        check(b"body", columns, checksum(b"body", COLUMNS))


def test_a_changed_dead_letter_is_found() -> None:
    row = to_row(LETTER, 7)
    assert from_row(row).message == MESSAGE
    assert from_row(row).message.proof == PROOF

    for at, changed in ((7, "other"), (3, "another"), (BODY, row[BODY][:-1] + b"?")):
        with pytest.raises(SpoolError, match="checksum"):
            from_row([*row[:at], changed, *row[at + 1 :]])


def test_a_damaged_row_is_not_read_from_the_dead_letters() -> None:
    raw = pack_batch([MESSAGE], [])
    letter = replace(LETTER, rule=SPOOL_DAMAGED, message=Message("", raw))
    row = to_row(letter, 7)

    assert row[BODY].endswith(raw)
    with pytest.raises(SpoolError):
        from_row(row)
    with pytest.raises(SpoolError):
        unpack_batch(row[BODY])
