"""Messages of NATS that come again: their order, their marks, and those that do not come again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.endpoints.base import Batch, Source
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.outcome import ACCEPTED, RETRY, rejected
from gateway.runtime.inbound.source_memories import MemoryFile, SourceMemories
from tests.brokers.nats_server import NatsServer
from tests.endpoints.exchange import collect, hold, opened, receive, reopen, send, wait_for_loss
from tests.endpoints.nats.stream import ask, numbers, say, source_of
from tests.memories import remember
from tests.waiting import PATIENCE


def source_with(settings: NatsSettings, file: Path) -> Source:
    """Return a source that remembers in `file` what it read."""
    source = source_of(settings)
    remember(source, file)
    return source


def test_a_killed_server_loses_nothing_and_keeps_the_order(
    settings: NatsSettings, nats_server: NatsServer
) -> None:
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        assert send(sink, *(say(number) for number in range(50))) == [ACCEPTED] * 50
        hold(source, 50)
        nats_server.kill()
        wait_for_loss(source)
        nats_server.start()
        reopen(sink)
        send(sink, say(50))
        reopen(source)
        got = collect(source, 51)

    assert numbers(got) == list(range(51))


def test_messages_that_a_killed_server_forgot_to_have_delivered_are_marked(
    settings: NatsSettings, nats_server: NatsServer, tmp_path: Path
) -> None:
    """It writes the state of a consumer after the answers, and may be killed before."""
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        send(sink, say(0), say(1))
        hold(source, 2)
        nats_server.kill()
        wait_for_loss(source)
        (state,) = tmp_path.rglob("o.dat")
        state.unlink()
        nats_server.start()
        reopen(sink)
        send(sink, say(2))
        reopen(source)
        got = collect(source, 3)

    assert [each.headers.redelivered for each in got] == [True, True, False]


@pytest.mark.parametrize("lost", ["o.dat", "*"])
def test_a_new_gateway_marks_what_a_killed_server_forgot(
    settings: NatsSettings, nats_server: NatsServer, tmp_path: Path, lost: str
) -> None:
    """The gateway was killed, too, when messages had come and their rows were not written."""
    source, sink = source_with(settings, tmp_path / "a"), make_sink(settings)
    with opened(sink, source):
        send(sink, say(0), say(1))
        hold(source, 2)
        (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
        nats_server.kill()
        (folder,) = tmp_path.rglob("obs")
        for file in [*folder.rglob(lost)]:
            file.unlink() if file.is_file() else None
        nats_server.start()
        reopen(sink)
        send(sink, say(2))
    with opened(source := source_with(settings, tmp_path / "b")):
        got = collect(source, 3)

    assert numbers(got) == [0, 1, 2]
    assert [each.headers.redelivered for each in got][:2] == [True, True]


def test_a_message_that_waited_for_a_restart_has_no_mark(
    settings: NatsSettings, tmp_path: Path
) -> None:
    sink = make_sink(settings)
    for _ in range(2):
        with opened(source := source_with(settings, tmp_path / "memory"), sink):
            send(sink, say(1))
            (got,) = collect(source, 1)
        with opened(sink):
            send(sink, say(2))
        with opened(source := source_with(settings, tmp_path / "memory")):
            (waited,) = collect(source, 1)
        assert (got.headers.redelivered, waited.headers.redelivered) == (False, False)


def test_a_source_without_a_memory_marks_what_a_consumer_may_have_delivered(
    settings: NatsSettings,
) -> None:
    sink = make_sink(settings)
    with opened(source_of(settings)):
        pass
    with opened(sink):
        send(sink, say(1))
    with opened(source := source_of(settings), sink):
        send(sink, say(2))
        got = collect(source, 2)

    assert [each.headers.redelivered for each in got] == [True, False]


@pytest.mark.parametrize("is_new", [False, True])
def test_a_source_with_a_damaged_session_file_marks_what_waits(
    settings: NatsSettings, tmp_path: Path, is_new: bool
) -> None:
    sink, file = make_sink(settings), tmp_path / "memory"
    with opened(source := source_with(settings, file), sink):
        send(sink, say(1))
        collect(source, 1)
        send(sink, say(2))
    file.write_text(file.read_text().replace("crc32", "crc"))
    if is_new:
        ask(settings, lambda js: js.delete_consumer("T", "gateway-nats-r"))
    with opened(source := source_with(settings, file), sink):
        send(sink, say(3))
        got = collect(source, 3 if is_new else 2)

    assert [each.headers.redelivered for each in got][-2:] == [True, False]


def test_the_mark_of_a_deleted_consumer_survives_restarts(
    settings: NatsSettings, tmp_path: Path
) -> None:
    settings = replace(settings, receive_window=1)
    file, sink = tmp_path / "memory", make_sink(settings)
    with opened(source := source_with(settings, file), sink):
        send(sink, say(1), say(2), say(3))
        collect(source, 3)
    ask(settings, lambda js: js.delete_consumer("T", "gateway-nats-r"))
    with opened(source := source_with(settings, file)):
        hold(source, 1)
    with opened(source := source_with(settings, file), sink):
        send(sink, say(4))
        got = collect(source, 4)

    assert [each.headers.redelivered for each in got] == [True, True, True, False]


def test_what_a_reader_left_behind_comes_before_anything_newer(settings: NatsSettings) -> None:
    """The server reads returned messages apart from requests: a race, so it is run often."""
    sink = make_sink(settings)
    with opened(sink):
        send(sink, *(say(number) for number in range(50)))
    for attempt in range(40):
        own = replace(settings, consumer=f"c{attempt}", receive_window=25)
        with opened(source := source_of(own)):
            hold(source, 25)
        with opened(source := source_of(replace(own, receive_window=50))):
            got = collect(source, 50)
        assert numbers(got) == list(range(50))


def test_a_server_that_takes_back_a_delivery_but_not_its_wait_does_not_stop_the_source(
    settings: NatsSettings, nats_server: NatsServer, tmp_path: Path
) -> None:
    """nats-server 2.9.10 does so when a connection ends while it delivers to it.

    It then waits for an answer to message 1, and the last message that it delivered is 0.
    """
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        send(sink, say(0))
        hold(source, 1)
        nats_server.stop()
        wait_for_loss(source)
        (state,) = tmp_path.rglob("o.dat")
        written = bytearray(state.read_bytes())
        assert written[2:7] == bytes([0, 0, 1, 1, 1])  # answered to, delivered, number of waiting
        written[5] = 0  # the stream's number of the last delivery
        state.write_bytes(written)
        nats_server.start()
        reopen(sink)
        send(sink, say(1))
        reopen(source)
        got = collect(source, 2)

    assert numbers(got) == [0, 1]
    assert [each.headers.redelivered for each in got] == [True, False]


def test_messages_that_the_server_returns_in_another_order_are_put_in_theirs(
    settings: NatsSettings,
) -> None:
    """A `-NAK` moves no message that waits already; another reader took the first ones."""
    sink, source = make_sink(settings), source_of(settings)
    with opened(source):
        pass  # makes the consumer
    with opened(sink):
        send(sink, *(say(number) for number in range(20)))

    async def other_reader(jetstream: Any) -> None:  # noqa: ANN401  # the library's
        reader = await jetstream.pull_subscribe_bind("gateway-nats-r", "T")
        for message in await reader.fetch(20):
            await message.nak()
        await reader.fetch(5)

    ask(settings, other_reader)
    with opened(source):
        got = collect(source, 20)

    assert numbers(got) == list(range(20))


def test_a_consumer_that_was_deleted_meanwhile_gives_marked_messages(
    settings: NatsSettings, tmp_path: Path
) -> None:
    """They may have been delivered in a run whose identities are forgotten."""
    sink, marks = make_sink(settings), []
    for run in (1, 2, 3):
        with opened(sink):
            send(sink, say(run))
        with opened(source := source_with(settings, tmp_path / "memory")):
            got = collect(source, 3 if run == 3 else 1)
        marks.append([each.headers.redelivered for each in got])
        if run == 2:
            ask(settings, lambda js: js.delete_consumer("T", "gateway-nats-r"))

    assert marks == [[False], [False], [True, True, False]]


def test_a_number_that_a_restored_stream_gives_again_is_another_message(
    settings: NatsSettings, nats_server: NatsServer, tmp_path: Path
) -> None:
    """So does a server whose machine failed before its last messages were on disk."""
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        send(sink, say(1))
        collect(source, 1)
    nats_server.stop()
    state = nats_server.folder / "jetstream"
    shutil.copytree(state, tmp_path / "backup")
    nats_server.start()
    with opened(sink, source):
        send(sink, say(2))
        lost = receive(source)
        lost.settle([ACCEPTED])
    nats_server.stop()
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "backup", state)
    nats_server.start()
    with opened(sink, source):
        send(sink, say(3))
        new = receive(source)

    assert numbers([*lost.messages, *new.messages]) == [2, 3]
    assert lost.identities != new.identities
    assert lost.messages[0].headers.source_id != new.messages[0].headers.source_id


def test_a_dead_letter_is_not_delivered_again(settings: NatsSettings) -> None:
    settings = replace(settings, ack_wait=1.0)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1))
        receive(source).settle([rejected(PAYLOAD, "reason")])
        assert source.receive(1.5) is None


def test_an_unsettled_message_is_not_delivered_again_after_the_wait(
    settings: NatsSettings,
) -> None:
    settings = replace(settings, ack_wait=1.0)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1))
        batch = receive(source)
        assert source.receive(2.5) is None
        batch.settle([ACCEPTED])


@pytest.mark.nightly
def test_a_source_that_starts_in_the_middle_of_a_redelivery_keeps_the_order(
    settings: NatsSettings, tmp_path: Path
) -> None:
    """nats-server 2.9 lowers the number of its last delivery while it delivers again.

    The server's own redelivery, which would end a wait for messages that do not come, is far away.
    """
    settings, sink = replace(settings, ack_wait=10 * PATIENCE), make_sink(settings)
    with opened(sink):
        send(sink, *(say(number) for number in range(5_000)))
    settled = 0
    for attempt in range(60):
        with opened(source := source_with(settings, tmp_path / "memory")):
            if attempt % 3 == 1:
                continue
            batch = receive(source)
            got = numbers([*batch.messages])
            assert got == list(range(settled, settled + len(got))), attempt
            taken = min(20, len(got))
            batch.settle([ACCEPTED] * taken + [RETRY] * (len(got) - taken))
            settled += taken
            if attempt % 3 == 2:
                hold(source, 1)
    with opened(source := source_with(settings, tmp_path / "memory")):
        assert numbers(collect(source, 5_000 - settled)) == list(range(settled, 5_000))


@pytest.mark.parametrize("was", ["nats old", "nats new"])
def test_an_endpoint_with_another_name_marks_what_it_gets_again(
    settings: NatsSettings, tmp_path: Path, was: str
) -> None:
    """Its consumer has another name, too, and gets the stream from its beginning."""
    sink, file, identities, marks = make_sink(settings), tmp_path / "memory", [], []
    for name, role in (("old", "nats old"), ("new", was)):
        source = source_of(replace(settings, name=name))
        store = SourceMemories(MemoryFile(file))
        store.use_roles([role], [role])
        source.memory.keep_in(store, role)  # type: ignore[attr-defined]  # of this source
        with opened(source, sink):
            if name == "old":
                send(sink, say(1), say(2))
            got = collect_batches(source, 2)
            identities.append([each for batch in got for each in batch.identities])
            marks += [each.headers.redelivered for batch in got for each in batch.messages]

    assert identities[0] == identities[1]
    assert marks == [False, False, True, True]


def collect_batches(source: Source, count: int) -> list[Batch]:
    """Receive and settle batches of `count` messages or more."""
    batches = hold(source, count)
    for batch in batches:
        batch.settle([ACCEPTED] * len(batch.messages))
    return batches
