"""Heartbeats: each has its number, and one that comes back proves a loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.model.message import Headers, Message
from gateway.runtime.monitor import watchdog
from gateway.runtime.monitor.watchdog import MAX_HEARTBEATS, Heartbeat

REDELIVERED = Headers(redelivered=True)


def heartbeat(route: str = "all") -> Heartbeat:
    return Heartbeat("g", route, "plant", "line/beat", {})


def test_every_heartbeat_is_another_message_also_of_a_later_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchdog, "now", iter([7, 7, 6, 9]).__next__)
    first, second = heartbeat(), heartbeat()
    sent = [first.next_message(), first.next_message(), first.next_message()]
    sent.append(second.next_message())

    assert [each.payload for each in sent] == [
        b"gateway-heartbeat g/all %d" % number for number in (7, 8, 9, 9)
    ]


def test_a_heartbeat_is_ours_if_it_was_sent_here() -> None:
    ours, other, earlier_run = heartbeat(), heartbeat("other"), heartbeat()
    stranger = replace(earlier_run.next_message(), payload=b"gateway-heartbeat g/all 1")
    sent = ours.next_message()

    assert ours.is_ours(sent)
    assert ours.is_ours(replace(sent, payload=sent.payload))
    for message in (
        stranger,
        other.next_message(),
        replace(sent, address="line/1"),
        replace(sent, payload=b""),
        Message("line/beat", b"gateway-heartbeat g/all "),
    ):
        assert not ours.is_ours(message)


@pytest.mark.parametrize(
    ("receipts", "copies", "loops"),
    [
        pytest.param([Headers()], 1, [False], id="once"),
        pytest.param([Headers(), Headers()], 1, [False, True], id="twice"),
        pytest.param([Headers(), REDELIVERED, REDELIVERED], 1, [False] * 3, id="redelivered"),
        pytest.param([Headers(), REDELIVERED, Headers()], 1, [False, False, True], id="and-back"),
        pytest.param([REDELIVERED, Headers()], 1, [False, False], id="first-redelivered"),
        pytest.param([Headers()] * 3, 2, [False, False, True], id="two-subscriptions"),
    ],
)
def test_a_heartbeat_that_comes_back_proves_a_loop(
    receipts: list[Headers], copies: int, loops: list[bool]
) -> None:
    ours = heartbeat()
    ours.copies = copies
    sent, later = ours.next_message(), ours.next_message()

    found = [ours.note_received(replace(sent, headers=each)) for each in receipts]

    assert found == loops
    assert not ours.note_received(later)


def test_the_oldest_heartbeats_are_forgotten() -> None:
    ours = heartbeat()
    sent = [ours.next_message() for _ in range(MAX_HEARTBEATS + 1)]

    assert not ours.is_ours(sent[0])
    assert not ours.note_received(sent[0])
    assert not ours.note_received(sent[0])
    assert all(map(ours.is_ours, sent[1:]))
