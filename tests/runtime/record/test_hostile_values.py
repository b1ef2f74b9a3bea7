"""Every message can be recorded, spooled and kept as a dead letter, whatever values it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from gateway.archive.journal.records import pack
from gateway.model.dead_letter_rule import POISONED
from gateway.model.message import Headers, Message, Value
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.rows import BatchOrigin, fingerprint, header_map
from gateway.runtime.outbound.dead_letters import DeadLetters, from_row, to_row
from gateway.runtime.outbound.spool_codec import pack_message, unpack_message
from gateway.runtime.outbound.spool_db import SpoolDatabase
from tests.copy_proofs import PROOF
from tests.runtime.received_batches import received_batch
from tests.threads import on_a_thread
from tests.waiting import PATIENCE, until

ORIGIN = BatchOrigin("here", "solace", 1)
NO_ROUTE = Delivery(None, None, "", rule=POISONED, reason="it broke")
HUGE = 1 << 16_000  # more digits than Python converts


def nested(depth: int) -> Value:
    value: Value = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE = [
    pytest.param({"n": HUGE}, id="huge-integer"),
    pytest.param({"n": [-HUGE, {"m": HUGE}]}, id="huge-integers-inside"),
    pytest.param({"n": 1 << 64}, id="integer-past-64-bits"),
    pytest.param({"n": nested(600)}, id="nested-past-msgpack"),
    pytest.param({"n": nested(100_000)}, id="nested-past-the-stack"),
    pytest.param({"\ud800": "\udfff"}, id="surrogates"),
    pytest.param({"n": object()}, id="no-value-at-all"),
]


def letter_of(message: Message) -> DeadLetter:
    return DeadLetter(
        0, 1, b"i" * 16, "r", "s", message.address, "t", "", "rule", "why", 1, message
    )


def messages_of(values: dict[str, Value]) -> Sequence[Message]:
    headers = Headers(properties=values)
    return [Message("a/\ud800", values), Message("b", b"raw", headers), Message("c", "\ud800")]


@pytest.mark.parametrize("values", HOSTILE)
@on_a_thread
def test_rows_of_every_message_can_be_packed(values: dict[str, Value]) -> None:
    messages = messages_of(values)
    record = received_batch(messages, ORIGIN)
    received = record.received_rows([0, 1, 2], [RouteMatch(None, ())] * 3)
    for at in range(3):
        record.refused(at, replace(NO_ROUTE, reason="why \ud800"), 5)

    assert len(record.rows) == 3
    assert pack([received, *record.rows])


@pytest.mark.parametrize("time", [1 << 64, -(1 << 64), HUGE], ids=["above", "below", "huge"])
@on_a_thread
def test_a_time_that_an_archive_cannot_store_is_left_out(time: int) -> None:
    record = received_batch([Message("a", b"", Headers(time=time)), Message("b", b"")], ORIGIN)
    rows = record.received_rows([0, 1], [RouteMatch(None, ())] * 2)

    assert "source_time" not in rows.columns
    assert pack([rows])


@pytest.mark.parametrize("values", HOSTILE)
@on_a_thread
def test_every_message_becomes_a_dead_letter_on_disk(
    tmp_path: Path, values: dict[str, Value]
) -> None:
    database = SpoolDatabase(tmp_path)
    stored: list[bool] = []
    letters = DeadLetters(database, 1 << 20)
    letters.put([letter_of(each) for each in messages_of(values)], lambda: stored.append(True))
    until(lambda: bool(stored), "the letters are durable")
    rows = database.rows("SELECT * FROM letters ORDER BY number")
    database.close(PATIENCE)

    found = [from_row(row) for row in rows]
    assert [each.message.address for each in found][1:] == ["b", "c"]
    assert found[1].message.payload == b"raw"
    assert all(each.source_name for each in found)


@on_a_thread
def test_a_dead_letter_without_a_form_on_disk_keeps_its_text() -> None:
    unknown = cast(Value, object())
    headers = Headers(properties={"p": unknown, "q": "text"})
    message = Message("a", {"k": unknown}, headers, PROOF)

    letter = from_row(to_row(letter_of(message), 1))

    assert isinstance(letter.message.payload, bytes)
    assert b"k" in letter.message.payload
    assert letter.message.headers.properties["property.q"] == "text"
    assert letter.message.proof == PROOF


@on_a_thread
def test_huge_integers_survive_the_disk() -> None:
    message = Message("a", {"n": [HUGE, -HUGE, 1 << 64, True, 5]})

    assert unpack_message(pack_message(message)) == message


@on_a_thread
def test_a_huge_integer_has_a_text_and_a_fingerprint() -> None:
    message = Message("a", {"n": HUGE}, Headers(properties={"n": -HUGE}))

    assert header_map(message)["property.n"] == hex(-HUGE)
    assert fingerprint({"n": HUGE}) == fingerprint({"n": HUGE})
    assert fingerprint({"n": HUGE}) != fingerprint({"n": -HUGE})
