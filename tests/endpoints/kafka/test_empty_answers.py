"""A server that answers at once where it has no message is asked less often."""

from __future__ import annotations

import json
import threading

import pytest

from tests.brokers.kafka_server import KafkaServer
from tests.endpoints.kafka.records import Records, losses, marks, numbers, reading, receive, settle
from tests.waiting import until

pytest.importorskip("confluent_kafka")

from gateway.endpoints.kafka import intake as kafka_intake
from gateway.endpoints.kafka.empty_answers import MOST, EmptyAnswers
from gateway.endpoints.kafka.intake import KafkaIntake


def statistics(seconds: float, asked: int, messages: int) -> str:
    """Return what the library says after so many seconds of a client with two servers."""
    servers = {"1": {"req": {"Fetch": asked}}, "coordinator": {"req": {}}}
    return json.dumps({"ts": int(seconds * 1e6), "rxmsgs": messages, "brokers": servers})


def test_empty_answers_hurry_as_long_as_many_come() -> None:
    answers, found = EmptyAnswers(), list[bool]()
    for seconds, asked, messages in (
        (1, MOST, 0),
        (2, 2 * MOST + 1, 0),  # one more than a server gives that waits
        (3, 2 * MOST + 1, 0),  # not asked
        (4, 4 * MOST, 0),
        (5, 9 * MOST, 4 * MOST),  # four of five had a message
        (6, 20 * MOST, 4 * MOST),
    ):
        answers.note(statistics(seconds, asked, messages))
        found.append(answers.hurry)

    assert found == [False, True, True, True, False, True]


@pytest.mark.broker
def test_a_source_without_messages_rests_and_goes_on_with_the_next(
    kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """noida-db answers at once."""
    monkeypatch.setattr(kafka_intake, "INTERVAL", 0.1)
    rests = threading.Event()
    pause = KafkaIntake._pause  # noqa: SLF001  # nothing of a source shows it

    def paused(*args: object) -> None:
        rests.set()
        pause(*args)  # type: ignore[arg-type]  # a method

    monkeypatch.setattr(KafkaIntake, "_pause", paused)
    records = Records(kafka_server.url)
    records.make("t", 3)
    with reading(records.settings, "t") as source:
        found = []
        for number in range(3):
            until(lambda: source.receive(0.05) is None and rests.is_set())
            records.send("t", [number], partition=number)
            found += receive(source, 1)
            settle(found[-1:])
            rests.clear()
        assert losses(source) == []

    assert numbers(found) == [0, 1, 2]
    assert marks(found) == {False}
