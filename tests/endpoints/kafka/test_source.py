"""A source of Kafka at a server: its group, its commits, what it marks, and what it reports."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import monotonic

import pytest

from gateway.endpoints.base import Batch, Source
from gateway.endpoints.continuity import Retention
from gateway.endpoints.kafka import intake as kafka_intake
from gateway.endpoints.kafka.commits import Commits
from gateway.endpoints.kafka.headers import TOMBSTONE
from gateway.endpoints.kafka.positions import DELETED, DROPPED, LOST_END
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.source_shell import SourceShell
from gateway.errors import NotConnectedError, TakenOverError
from gateway.model.outcome import ACCEPTED, RETRY
from tests.brokers.kafka_server import KafkaServer
from tests.endpoints.exchange import opened, reopen
from tests.endpoints.kafka.records import (
    Records,
    losses,
    marked,
    marks,
    numbers,
    reading,
    receive,
    settle,
    source_of,
    with_small_window,
)
from tests.endpoints.kafka.stores import Store
from tests.endpoints.kafka.test_partitions import grow
from tests.waiting import until

pytestmark = pytest.mark.broker
GROUP = "gateway-kafka-r"


@pytest.fixture
def records(kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> Records:
    monkeypatch.setattr(kafka_intake, "REFRESH", 0.2)
    monkeypatch.setattr(kafka_intake, "COUNT", 0.0)
    monkeypatch.setattr(kafka_intake, "HEARTBEAT", 0.2)  # noida-db waits half a second for it
    return Records(kafka_server.url)


def lose(source: Source) -> None:
    """Receive until the connection is lost."""

    def is_lost() -> bool:
        try:
            source.receive(0.1)
        except NotConnectedError:
            return True
        return False

    until(is_lost)


def test_topic_and_key_name_a_message(records: Records) -> None:
    records.make("plant.7")
    records.send("plant.7", [0], b"a b/\xc3\xa9")
    records.send("plant.7", [1], None)
    records.send("plant.7", [2], b"")
    records.send("plant.7", [3], b"\xff")
    with reading(records.settings, "plant.7") as source:
        batches = receive(source, 4)

    names = [each.address for batch in batches for each in batch.messages]
    assert names == ["plant.7:a b/é", "plant.7", "plant.7:", "plant.7:\udcff"]


def test_only_settled_messages_are_committed_and_the_rest_comes_again_marked(
    records: Records,
) -> None:
    records.make("t")
    records.send("t", range(10))
    source = source_of(records.settings, "t")
    with opened(source):
        [batch] = receive(source, 10)
        batch.settle([ACCEPTED] * 4 + [RETRY] + [ACCEPTED] * 5)
    assert records.committed(GROUP, "t") == 4

    with opened(source):
        batches = receive(source, 6)

    assert numbers(batches) == [*range(4, 10)]
    assert marks(batches) == {True}


def test_a_member_commits_before_it_leaves(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Commits, "ask", lambda *_: None)  # while it reads
    records.make("t")
    records.send("t", range(5))
    with reading(records.settings, "t") as source:
        settle(receive(source, 5))
    assert records.committed(GROUP, "t") == 5


def test_a_stop_behind_settled_messages_repeats_none_and_doubts_none(records: Records) -> None:
    records.make("t", 3)
    for partition in range(3):
        records.send("t", range(10), partition=partition)
    source = source_of(records.settings, "t")
    with opened(source):
        settle(receive(source, 30))
    for partition in range(3):
        records.send("t", range(10, 12), partition=partition)

    with opened(source):
        batches = receive(source, 6)

    assert sorted(numbers(batches)) == [10, 10, 10, 11, 11, 11]
    assert marks(batches) == {False}
    assert losses(source) == []


def test_messages_of_an_aborted_transaction_are_not_received(records: Records) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  # the fixture skips without it

    records.make("t")
    producer = Producer({"bootstrap.servers": records.server, "transactional.id": "x"})
    producer.init_transactions(5)
    for number, end in ((0, producer.abort_transaction), (1, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("t", value=b"%d" % number)
        end(5)
    source = source_of(records.settings, "t")
    with opened(source):
        batches = receive(source, 1)
        settle(batches)
    records.send("t", [2])

    with opened(source):
        batches += receive(source, 1)

    assert numbers(batches) == [1, 2]
    assert losses(source) == []


def test_a_topic_that_appears_later_is_read_from_its_first_message(records: Records) -> None:
    """The group divides its partitions again, for which all that is in flight is settled."""
    records.make("plant.a")
    records.send("plant.a", range(5))
    latest = replace(records.settings, start="earliest")
    with reading(latest, "plant.>") as source:
        held = receive(source, 5)
        records.make("plant.b")
        records.send("plant.b", range(10, 15))
        settle(held)
        batches = receive(source, 5)

    assert numbers(batches) == [*range(10, 15)]
    assert marks(batches) == {False}


def test_a_division_of_the_group_gives_back_what_stays_unsettled(records: Records) -> None:
    records.make("plant.a")
    records.send("plant.a", range(5))
    impatient = replace(records.settings, answer_timeout=0.5)
    source = source_of(impatient, "plant.>")
    with opened(source):
        [batch] = receive(source, 5)
        batch.settle([ACCEPTED, ACCEPTED, RETRY, RETRY, RETRY])
        records.make("plant.b")
        lose(source)
        source.open()
        batches = receive(source, 3)

    assert numbers(batches) == [2, 3, 4]
    assert marks(batches) == {True}


@contextmanager
def another_member(records: Records, topic: str) -> Iterator[list[int]]:
    """Read as another member of the group, which commits what it reads; yield its numbers."""
    from confluent_kafka import Consumer  # noqa: PLC0415  # the fixture skips without it

    options = {"bootstrap.servers": records.server, "group.id": GROUP, "session.timeout.ms": 6_000}
    options |= {"auto.offset.reset": "error", "partition.assignment.strategy": "range"}
    consumer, found, over = Consumer(options), list[int](), threading.Event()
    consumer.subscribe([topic])

    def read() -> None:
        while not over.is_set():
            each = consumer.poll(0.1)
            if each is not None and each.error() is None:
                found.append(int(each.value() or b"-1"))
        consumer.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def test_another_member_of_the_group_reads_beside_it_and_every_repeat_is_marked(
    records: Records,
) -> None:
    """noida-db takes the partitions of a member that commits while another one joins."""
    records.make("t", 4)
    source, sent = source_of(records.settings, "t"), 0
    own: list[tuple[int, bool]] = []
    of_last_connection = 0  # the first of them

    def send_each() -> None:
        nonlocal sent
        for partition in range(4):
            records.send("t", [partition * 1_000 + sent], partition=partition)
        sent += 1

    def read() -> int:
        nonlocal of_last_connection
        try:
            batch = source.receive(0.1)
        except NotConnectedError:
            reopen(source)
            of_last_connection = len(own)
            return len(own)
        if batch is not None:
            settle([batch])
            own.extend(zip(numbers([batch]), marked([batch]), strict=True))
        return len(own)

    with opened(source):
        send_each()
        until(lambda: read() >= 4)
        with another_member(records, "t") as others:
            while len(others) <= 4:
                send_each()
                read()
        send_each()
        wanted = {partition * 1_000 + each for partition in range(4) for each in range(sent)}
        until(lambda: read() > 0 and wanted <= {number for number, _ in own} | {*others})

    unmarked = [number for number, again in own if not again]
    assert len(unmarked) == len({*unmarked})
    assert {n for n, again in own[of_last_connection:] if not again}.isdisjoint(others)
    for partition in range(4):
        first = [*dict.fromkeys(number for number, _ in own if number // 1_000 == partition)]
        assert first == sorted(first)


def test_a_full_window_reads_no_further_and_goes_on_when_it_has_room(records: Records) -> None:
    records.make("t")
    records.send("t", range(100))
    with reading(with_small_window(records.settings, 10), "t") as source:
        held = receive(source, 10)
        assert source.receive(2 * kafka_intake.PAUSE) is None
        settle(held)
        held = receive(source, 10)
        assert source.receive(0.2) is None
        settle(held)
        batches: list[Batch] = []
        while len(numbers(batches)) < 80:
            new = receive(source, 1)
            settle(new)
            batches += new

    assert numbers(batches) == [*range(20, 100)]
    assert marks(batches) == {False}


def test_a_window_of_bytes_holds_back_the_rest(records: Records) -> None:
    records.make("t")
    long = {"long": b"x" * 10_000}
    records.send("t", range(100), headers=long)
    small = replace(records.settings, receive_window_bytes=65_536)
    with reading(small, "t") as source:
        held = receive(source, 100)  # noida-db sends all of a partition at once
        records.send("t", range(100, 200), headers=long)
        assert source.receive(2 * kafka_intake.PAUSE) is None
        settle(held)
        assert numbers(receive(source, 1))[0] == 100


def test_what_retention_removed_while_it_was_away_has_its_number(records: Records) -> None:
    records.make("t")
    records.send("t", range(10))
    source = source_of(records.settings, "t")
    with opened(source):
        settle(receive(source, 10))
    records.send("t", range(10, 40))
    records.remove_records("t", 30)

    with opened(source):
        batches = receive(source, 10)

    assert numbers(batches) == [*range(30, 40)]
    assert losses(source) == [(DROPPED, 20)]


def test_what_retention_removed_before_a_slow_source_read_it_has_its_number(
    records: Records,
) -> None:
    records.make("t")
    records.send("t", range(10))
    source = source_of(with_small_window(records.settings, 5), "t")
    with opened(source):
        held = receive(source, 5)
        assert source.receive(2 * kafka_intake.PAUSE) is None  # its partitions pause
        records.send("t", range(10, 40))
        records.remove_records("t", 30)
        settle(held)
        lose(source)
        source.open()
        batches = receive(source, 5)

    assert numbers(batches) == [*range(30, 35)]
    assert losses(source) == [(DROPPED, 25)]


def test_a_topic_that_was_made_again_is_read_from_its_first_message(records: Records) -> None:
    records.make("t")
    records.send("t", range(10))
    source = source_of(records.settings, "t")
    with opened(source):
        settle(receive(source, 10))
        records.remove("t")
        records.make("t")
        records.send("t", range(100, 105))
        with suppress(NotConnectedError):
            until(lambda: source.receive(0.1) is not None)
        source.open()
        batches = receive(source, 5)

    assert numbers(batches) == [*range(100, 105)]
    assert losses(source) == [(LOST_END, None)]


def test_a_topic_that_was_deleted_before_all_was_read_is_a_gap(records: Records) -> None:
    for topic in ("plant.a", "plant.b"):
        records.make(topic)
        records.send(topic, range(5))
    source = source_of(records.settings, "plant.>")
    with opened(source):
        settle(receive(source, 10))
        until(lambda: source.receive(0.05) is None and source.backlog == 0)
        records.remove("plant.a")
        until(lambda: source.receive(0.05) is None and len(memory_facts(source)) == 1)
        assert losses(source) == []
    records.send("plant.b", [5])
    records.remove("plant.b")
    with opened(source):
        until(lambda: source.receive(0.05) is None and not memory_facts(source))

    assert losses(source) == [(DELETED, None)]


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_partitions_that_are_added_are_read_from_their_first_message(
    records: Records, kafka_server: KafkaServer, start: str
) -> None:
    records.make("t", 2)
    with reading(replace(records.settings, start=start), "t") as source:
        records.send("t", [0], partition=0)
        settle(receive(source, 1))
        grow(kafka_server, "t", 4)
        later = Records(records.server)  # a client that knows them
        later.send("t", [1], partition=2)
        later.send("t", [2], partition=3)
        batches = receive(source, 2)
        found = losses(source)

    assert sorted(numbers(batches)) == [1, 2]
    assert (marks(batches), found) == ({False}, [])


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_pattern_without_topics_waits_for_them(records: Records, start: str) -> None:
    with reading(replace(records.settings, start=start), "plant.>") as source:
        assert source.receive(0.05) is None
        records.make("plant.a")
        records.send("plant.a", range(3))
        batches = receive(source, 3)

    assert numbers(batches) == [0, 1, 2]


def memory_facts(source: SourceShell) -> list[str]:
    return source.memory.positions_of("partition ")


@pytest.mark.parametrize(
    ("start", "first", "retention"),
    [
        ("earliest", 0, Retention.KEPT),
        ("latest", 10, Retention.NEW),
        ("2020-01-01T00:00:02Z", 2, Retention.NEW),
        ("2030-01-01T00:00:00Z", 10, Retention.NEW),
    ],
)
def test_a_group_without_a_position_begins_at_start(
    records: Records, start: str, first: int, retention: Retention
) -> None:
    records.make("t")
    for number in range(10):
        records.send("t", [number], timestamp=1_577_836_800_000 + 1_000 * number)
    source = source_of(replace(records.settings, start=start), "t")
    with opened(source):
        assert source.continuity.retention is retention
        records.send("t", range(10, 12))
        batches = receive(source, 12 - first)

    assert numbers(batches) == [*range(first, 12)]
    assert marks(batches) == {False}


def test_at_latest_a_topic_that_is_made_later_has_no_message_that_is_skipped(
    records: Records,
) -> None:
    records.make("plant.a")
    with reading(replace(records.settings, start="latest"), "plant.>") as source:
        records.make("plant.b")
        records.send("plant.b", range(5))
        batches = receive(source, 5)

    assert numbers(batches) == [*range(5)]


def test_a_group_without_its_commits_goes_on_behind_what_its_memory_has(records: Records) -> None:
    """The servers forget the commits of a group without members after some days."""
    records.make("t")
    records.send("t", range(10))
    store, settings = Store(), replace(records.settings, start="latest")
    source = source_of(replace(settings, start="earliest"), "t")
    source.memory.keep_in(store, "kafka lake")
    with opened(source):
        settle(receive(source, 10))
    records.send("t", range(10, 15))
    commits_gone = source_of(replace(settings, group_id="{instance}"), "t")
    assert store.facts is not None
    commits_gone.memory.keep_in(store, "kafka lake")

    with opened(commits_gone):
        batches = receive(commits_gone, 5)

    assert numbers(batches) == [*range(10, 15)]
    assert marks(batches) == {False}
    assert losses(commits_gone) == []


def test_the_next_process_takes_the_place_of_one_that_still_runs(records: Records) -> None:
    records.make("t")
    records.send("t", range(5))
    first, second = (source_of(records.settings, "t") for _ in range(2))
    with opened(first), opened(second):
        with pytest.raises(TakenOverError, match="another client has its name"):
            until(lambda: first.receive(0.1) is None and False)
        assert numbers(receive(second, 5)) == [*range(5)]


def test_a_topic_that_does_not_exist_is_read_when_it_does(
    records: Records, caplog: pytest.LogCaptureFixture
) -> None:
    records.make("t")
    with reading(records.settings, "t", "later") as source:
        until(lambda: source.receive(0.05) is None and "there is no topic later" in caplog.text)
        records.make("later")
        records.send("later", range(3))
        batches = receive(source, 3)

    assert numbers(batches) == [0, 1, 2]


def test_a_server_that_ends_is_a_lost_connection_and_its_messages_come_behind_it(
    records: Records, kafka_server: KafkaServer
) -> None:
    records.make("t")
    records.send("t", range(5))
    source = source_of(replace(records.settings, connect_timeout=1), "t")
    with opened(source):
        settle(receive(source, 5))
        until(lambda: records.committed(GROUP, "t") == 5)
        kafka_server.stop()
        lose(source)
        with pytest.raises(NotConnectedError, match=kafka_server.url):
            source.open()
        kafka_server.start()
        source.open()
        records.send("t", range(5, 8))
        batches = receive(source, 3)

    assert numbers(batches) == [5, 6, 7]
    assert marks(batches) == {False}


def test_what_waits_is_counted(records: Records) -> None:
    records.make("t", 2)
    records.send("t", range(20))
    with reading(with_small_window(records.settings, 5), "t") as source:
        held = receive(source, 5)
        until(lambda: source.backlog == 20)
        settle(held)
        until(lambda: source.receive(0.05) is None or source.backlog == 15)


def test_settings_of_a_source_name_its_group(records: Records) -> None:
    own: KafkaSettings = replace(records.settings, group_id="plant-{instance}")
    records.make("t")
    records.send("t", range(3))
    with reading(own, "t") as source:
        settle(receive(source, 3))
        until(lambda: source.receive(0.05) is None and records.committed("plant-r", "t") == 3)


def test_a_close_does_not_wait_for_a_server_that_is_silent(
    records: Records, kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_intake, "CLOSE", 0.5)
    records.make("t")
    records.send("t", range(5))
    source = source_of(records.settings, "t")
    with opened(source):
        batches = receive(source, 5)
        kafka_server.freeze()
        settle(batches)
        began = monotonic()
        source.close()
        assert monotonic() - began < records.settings.answer_timeout
        kafka_server.thaw()
        source.open()
        records.send("t", range(5, 8))
        while not {5, 6, 7} <= {*numbers(batches)}:
            batches += receive(source, 1)

    repeats = [
        n for n, again in zip(numbers(batches[1:]), marked(batches[1:]), strict=True) if not again
    ]
    assert repeats == [5, 6, 7]


def test_a_close_ends_an_open_that_waits_for_its_group(
    records: Records, kafka_server: KafkaServer
) -> None:
    source = source_of(replace(records.settings, connect_timeout=50), "t")
    kafka_server.freeze()
    failures: list[Exception] = []

    def open_it() -> None:
        try:
            source.open()
        except NotConnectedError as error:
            failures.append(error)

    thread = threading.Thread(target=open_it)
    thread.start()

    def is_ended() -> bool:
        source.close()  # the first one may come before there is anything to end
        return not thread.is_alive()

    until(is_ended, seconds=20)
    assert len(failures) == 1


@pytest.mark.parametrize(("names", "expected"), [("parts", "t:k"), ("header", "plant.7:a")])
def test_a_header_names_a_message_only_of_trusted_producers(
    records: Records, names: str, expected: str
) -> None:
    records.make("t")
    records.send("t", [0], headers={"gateway_name": b"plant.7:a"})
    records.send("t", [1])
    with reading(replace(records.settings, named_by=names), "t") as source:
        batches = receive(source, 2)

    assert [m.address for batch in batches for m in batch.messages] == [expected, "t:k"]


def test_headers_of_a_stranger_come_as_they_are(records: Records) -> None:
    """Repeated, null, empty, and long."""
    records.make("t")
    long = b"x" * 1_000_000
    strange = [("a", b"1"), ("a", b"2"), ("none", None), ("", b""), ("long", long)]
    records.send("t", [0], headers=strange)
    with reading(records.settings, "t") as source:
        [batch] = receive(source, 1)

    [message] = batch.messages
    expected = {"a": ["1", "2"], "none": None, "": "", "long": long.decode()}
    assert message.headers.properties == expected


def test_a_null_payload_is_a_tombstone(records: Records) -> None:
    records.make("t")
    records.send_null("t", b"k")
    with reading(records.settings, "t") as source:
        [batch] = receive(source, 1)

    [message] = batch.messages
    assert (message.payload, message.headers.properties) == (b"", {TOMBSTONE: True})
