from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from solace.messaging.receiver._impl._persistent_message_receiver import _PersistentMessageReceiver

from gateway.endpoints.continuity import DroppedMessages
from gateway.endpoints.solace.intake import SolaceIntake
from gateway.endpoints.source_shell import SourceShell
from gateway.errors import EndpointError, NotConnectedError, SubscriptionRefusedError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, rejected
from gateway.trial.brokers.smf import BrokerOptions, QueueOptions
from gateway.trial.brokers.smf.responses import (
    NO_MATCH,
    OVER_QUOTA,
    PUBLISH_DENIED,
    SUBSCRIPTION_DENIED,
    VPN_NOT_ALLOWED,
)
from gateway.wire.smf.responses import SmfResponse
from tests.endpoints.exchange import (
    QUIET,
    Answer,
    collect,
    hold,
    opened,
    receive,
    reopen,
    send,
    wait_for_loss,
)
from tests.endpoints.solace.restartable import (
    GUARANTEED,
    RestartableBroker,
    guaranteed_message,
    restartable,
    wait_less,
)
from tests.memories import remember
from tests.waiting import PATIENCE, until

OPTIONS = BrokerOptions(
    users={"u": "p"}, queues=(QueueOptions("#DEAD_MSG_QUEUE"),), queue_bytes=1_000_000
)


@pytest.fixture
def system() -> Iterator[RestartableBroker]:
    with restartable(OPTIONS) as system:
        yield system


def _raw(message: Message) -> bytes:
    assert isinstance(message.payload, bytes)
    return message.payload


def test_a_wrong_password_or_vpn_is_a_permanent_error(system: RestartableBroker) -> None:
    for changes, text in (
        ({"password": "wrong"}, "Unauthorized"),
        ({"vpn": "none"}, VPN_NOT_ALLOWED.text),
    ):
        for endpoint in (system.source("a", **changes), system.sink(**changes)):
            with pytest.raises(EndpointError, match=text) as caught:
                endpoint.open()
            assert not caught.value.retryable
            assert "wrong" not in str(caught.value)


def test_an_unreachable_or_full_broker_is_a_temporary_error(system: RestartableBroker) -> None:
    system.broker.faults.login = SmfResponse(503, "Too Many Clients")
    with pytest.raises(NotConnectedError, match="Too Many Clients"):
        system.sink().open()
    system.stop()
    with pytest.raises(NotConnectedError):
        system.sink().open()


def test_a_denied_subscription_is_a_permanent_error(system: RestartableBroker) -> None:
    system.broker.faults.subscribe["secret/>"] = SUBSCRIPTION_DENIED
    for guaranteed in (True, False):
        source = system.source("secret/x", guaranteed=guaranteed)
        with pytest.raises(SubscriptionRefusedError, match="Subscription ACL Denied") as caught:
            source.open()
        assert not caught.value.retryable


def test_a_missing_queue_is_an_error_without_create_queue(system: RestartableBroker) -> None:
    source = system.source("a", queue="missing", create_queue=False, subscribe_queue=False)

    with pytest.raises(EndpointError, match="Unknown Queue"):
        source.open()


def test_direct_messages_arrive_while_a_source_is_open(system: RestartableBroker) -> None:
    source, sink = system.source("a/>", guaranteed=False), system.sink()
    with opened(source, sink):
        send(sink, *(Message("a/x", b"%d" % i) for i in range(500)))
        got = collect(source, 500)

    assert [m.payload for m in got] == [b"%d" % i for i in range(500)]
    assert source.counts["lost"] == 0


def test_direct_messages_that_the_full_library_drops_are_a_loss(system: RestartableBroker) -> None:
    source = system.source("a/>", guaranteed=False, direct_buffer=1, receive_window_bytes=65_536)
    with opened(source, sink := system.sink()):
        send(sink, *(Message("a/x", bytes(20_000)) for _ in range(300)))  # more than fit
        while (batch := source.receive(0.5)) is not None:
            batch.settle([ACCEPTED] * len(batch.messages))
        send(sink, Message("a/x", b"next"))  # the library tells of dropped ones with the next
        until(lambda: source.receive(0.1) is not None)

    (loss,) = source.continuity.take_losses()
    assert "dropped here" in loss.reason
    assert loss.messages is None
    assert source.counts["lost"] > 0


@pytest.mark.parametrize("end", ["restored", "lost", "stopped", "not-restored"])
def test_an_interruption_without_a_message_before_it_begins_at_the_last_keepalive(
    system: RestartableBroker, end: str
) -> None:
    """A dead connection is noticed by its unanswered keepalives, and direct messages are lost."""
    begin = 1_700_000_000_000_000
    over = Event()
    attempts = {"lost": 1, "not-restored": 0}.get(end, 100)
    source = system.source(
        "a/>", guaranteed=False, keepalive=2.0, reconnect_attempts=attempts, reconnect_wait=0.1
    )
    source.continuity.clock = lambda: begin + 60_000_000 * over.is_set()
    losses: list[DroppedMessages] = []

    def is_reported() -> bool:
        losses.extend(source.continuity.take_losses())
        return bool(losses)

    with opened(source):
        connection = intake_of(source).connection  # tells when it is interrupted
        assert connection is not None
        system.stop()
        if attempts:
            until(lambda: connection.interrupted)
            over.set()
        if attempts < 2:
            wait_for_loss(source)
            assert source.continuity.heard == begin - 8_000_000
            return
        if end == "stopped":
            source.end_intake()
        else:
            system.start()
        until(is_reported)

    assert [(each.begin, each.end) for each in losses] == [(begin - 8_000_000, begin + 60_000_000)]


@pytest.mark.parametrize("closed", [False, True])
def test_direct_messages_that_have_arrived_outlive_the_connection(
    system: RestartableBroker, closed: bool
) -> None:
    """The broker delivers none of them again."""
    source = system.source("a/>", guaranteed=False)
    with opened(source, sink := system.sink()):
        send(sink, *(Message("a/x", b"%d" % i) for i in range(5)))
        arrivals = intake_of(source).queue  # the test is about what waits there
        until(lambda: len(arrivals.unsettled()) == 5)
        source.close() if closed else system.stop()
        until(lambda: arrivals.failure is not None)
        got = wait_for_loss(source)

    assert [message.payload for message in got] == [b"%d" % i for i in range(5)]


def test_a_stop_before_a_loss_is_seen_relays_the_direct_messages_that_have_arrived(
    system: RestartableBroker,
) -> None:
    source = system.source("a/>", guaranteed=False)
    with opened(source, sink := system.sink()):
        send(sink, *(Message("a/x", b"%d" % i) for i in range(5)))
        until(lambda: len(intake_of(source).queue.unsettled()) == 5)  # what waits there
        executor = intake_of(source).receiver._executor  # noqa: SLF001  # of the library
        system.stop()
        until(lambda: executor._shutdown, "the library has ended its receiver")  # noqa: SLF001
        source.end_intake()

        assert [message.payload for message in collect(source, 5)] == [b"%d" % i for i in range(5)]


def test_a_source_that_is_closed_before_the_end_of_its_intake_came_through_raises_nothing(
    system: RestartableBroker,
) -> None:
    """Its window is full, so that the library still has the mark of that end, and frees it."""
    source = system.source("a/>", guaranteed=False, receive_window_bytes=65_536)
    with opened(source, sink := system.sink()):
        send(sink, *(Message("a/x", bytes(10_000)) for _ in range(50)))
        until(lambda: len(intake_of(source).queue.unsettled()) > 6)  # what waits there
        receiver = intake_of(source).receiver  # of the library
        source.end_intake()
        until(lambda: receiver.receiver_queue.qsize() > 0)
        until(lambda: f"{source.name}-end" not in names_of_threads())
        source.close()


def test_a_source_is_closed_at_once_while_a_mute_broker_is_asked_for_its_end(
    system: RestartableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library goes on waiting for the answer, and reads the session meanwhile."""
    wait_less(monkeypatch)
    source = system.source("a/>", guaranteed=False)
    with opened(source):
        asked = intake_of(source).connection
        assert asked is not None
        session = asked.service.session
        system.freeze()
        source.end_intake()
        until(lambda: asked._users > 1)  # noqa: SLF001  # the library waits
        source.close()
        assert session.session_pointer or not asked._users  # noqa: SLF001  # as above
        until(lambda: not session.session_pointer, "the question does not release the session")
    until(lambda: f"{source.name}-end" not in names_of_threads())


def intake_of(source: SourceShell) -> SolaceIntake:
    """Return the connection of a source that is open."""
    intake = source._intake  # noqa: SLF001  # the tests are about what waits there
    assert isinstance(intake, SolaceIntake)
    return intake


def names_of_threads() -> set[str]:
    return {each.name for each in enumerate_threads()}


def test_a_shared_subscription_distributes_the_messages(system: RestartableBroker) -> None:
    settings: dict[str, Any] = {"guaranteed": False, "share": "group"}
    first, second = (system.source("a/>", **settings) for _ in range(2))
    with opened(first, second, sink := system.sink()):
        send(sink, *(Message("a/x", b"%d" % i) for i in range(10)))
        payloads = {_raw(m) for source in (first, second) for m in collect(source, 5)}

    assert payloads == {b"%d" % i for i in range(10)}


def test_a_shared_queue_distributes_the_messages(system: RestartableBroker) -> None:
    settings: dict[str, Any] = {"queue": "work", "exclusive_queue": False}
    first, second = (system.source("a/>", **settings) for _ in range(2))
    with opened(first, second, sink := system.sink()):
        send(sink, *(guaranteed_message("a/x", b"%d" % i) for i in range(10)))
        payloads = {_raw(m) for source in (first, second) for m in collect(source, 5)}

    assert payloads == {b"%d" % i for i in range(10)}


def test_each_instance_has_its_own_queue(system: RestartableBroker) -> None:
    source = system.source("a/>", queue="in/{instance}", instance="route-1")
    with opened(source):
        pass
    with opened(sink := system.sink()):
        send(sink, guaranteed_message("a/x"))

    assert system.broker.depth("in/route-1") == 1


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_topic_that_routes_no_longer_want_leaves_a_queue_of_one_reader(
    system: RestartableBroker, tmp_path: Path, exclusive: bool
) -> None:
    file = tmp_path / "test.sessions"
    for patterns, depth in ((("a/>", "b/>"), 2), (("b/>",), 1 if exclusive else 2)):
        source = system.source(*patterns, exclusive_queue=exclusive)
        remember(source, file)  # by another process each time
        with opened(source):
            pass
        with opened(sink := system.sink()):
            send(sink, guaranteed_message("a/x"), guaranteed_message("b/x"))
        until(lambda: system.depth() >= 1)
        assert system.depth() == depth
        with opened(source):
            collect(source, depth)
            until(lambda: system.depth() == 0, "all are settled")


def test_two_sources_leave_the_topics_of_each_other_on_their_queue(
    system: RestartableBroker, tmp_path: Path
) -> None:
    for _ in range(2):
        for pattern in ("a/>", "b/>"):
            source = system.source(pattern, queue="all", instance=pattern[0])
            remember(source, tmp_path / "memory", pattern)
            with opened(source):
                pass
    with opened(sink := system.sink()):
        send(sink, guaranteed_message("a/x"), guaranteed_message("b/x"))

    until(lambda: system.broker.depth("all") == 2)


def test_settlements_reach_the_broker(system: RestartableBroker) -> None:
    source, sink = system.source("a/>"), system.sink()
    with opened(source, sink):
        send(sink, *(guaranteed_message("a/x", b"%d" % i) for i in range(3)))
        batches = hold(source, 3)
        for batch in batches:
            batch.settle(
                [rejected(PAYLOAD, "x") if m.payload == b"1" else ACCEPTED for m in batch.messages]
            )
        until(lambda: system.depth() == 0, "all are settled")

    assert system.broker.depth("#DEAD_MSG_QUEUE") == 0  # the gateway keeps its dead letters


def test_a_retry_at_the_broker_is_delivered_again(system: RestartableBroker) -> None:
    source, sink = system.source("a/>", retry_at_broker=True), system.sink()
    with opened(source, sink):
        send(sink, guaranteed_message("a/x", b"0"))
        receive(source).settle([RETRY])
        (again,) = collect(source, 1)
        until(lambda: system.depth() == 0, "it is settled")

    assert again.headers.redelivered


def test_a_broker_that_lost_its_spool_gives_no_identity_again() -> None:
    """It counts from the start again; equal messages would pass for repeated ones."""
    identities: list[str] = []
    for spool in (b"spool-01", b"spool-02"):
        with restartable() as system:
            vpn = system.broker.state.vpns["default"]
            vpn.ids, vpn.spool_id = count(1).__next__, spool
            with opened(source := system.source("a/>"), sink := system.sink()):
                send(sink, guaranteed_message("a/x", b"alive"), guaranteed_message("a/x", b"alive"))
                identities += [each for batch in hold(source, 2) for each in batch.identities]

    assert len({*identities}) == 4
    assert [each[-16:] for each in identities[:2]] == [each[-16:] for each in identities[2:]]


def test_an_unread_source_stops_the_flow_of_messages(system: RestartableBroker) -> None:
    source, sink = system.source("a/>", receive_window_bytes=65_536), system.sink()
    payload = b"x" * 1_000
    with opened(source, sink):
        for _ in range(5):
            send(sink, *(guaranteed_message("a/x", payload) for _ in range(100)))
        queue = intake_of(source).queue  # the test is about its bound
        until(lambda: queue.held >= 65_536, "the queue is full")
        assert queue.held < 2 * 65_536
        got = collect(source, 500)

    assert len(got) == 500
    assert not any(m.headers.redelivered for m in got)


def test_closing_wakes_a_waiting_receiver_and_a_blocked_handler(system: RestartableBroker) -> None:
    source, sink = system.source("a/>", receive_window_bytes=65_536), system.sink()
    ended = Event()

    def receive_for_ever() -> None:
        wait_for_loss(source)
        ended.set()

    with opened(sink):
        source.open()
        send(sink, *(guaranteed_message("a/x", b"x" * 1_000) for _ in range(200)))
        Thread(target=receive_for_ever, daemon=True).start()
        until(lambda: intake_of(source).queue.held >= 65_536, "the queue is full")
        source.close()

        assert ended.wait(PATIENCE)


REFUSALS = [
    pytest.param(PUBLISH_DENIED, Outcome.REJECTED, "publish-acl", id="acl"),
    pytest.param(NO_MATCH, Outcome.REJECTED, "no-subscription", id="no-subscriber"),
    pytest.param(
        SmfResponse(400, "Message Too Long"), Outcome.REJECTED, "message-bytes", id="size"
    ),
    pytest.param(OVER_QUOTA, Outcome.RETRY, "no-room", id="quota"),
    pytest.param(SmfResponse(503, "Queue Shutdown"), Outcome.RETRY, "no-room", id="shutdown"),
]


@pytest.mark.parametrize(("response", "outcome", "rule"), REFUSALS)
def test_a_refusal_settles_only_its_own_message(
    system: RestartableBroker, response: SmfResponse, outcome: Outcome, rule: str
) -> None:
    system.broker.faults.publish["bad/>"] = response
    with opened(sink := system.sink()):
        before, wrong, after = send(
            sink, guaranteed_message("a"), guaranteed_message("bad/x"), guaranteed_message("a")
        )

    assert (before, after) == (ACCEPTED, ACCEPTED)
    assert (wrong.outcome, wrong.rule) == (outcome, rule)
    assert response.text in wrong.reason


def test_more_messages_than_the_window_are_sent_as_answers_arrive(
    system: RestartableBroker,
) -> None:
    with opened(sink := system.sink(), source := system.source("a/>")):
        answers = [Answer() for _ in range(10)]
        for part, answer in enumerate(answers):
            sink.send(
                [guaranteed_message("a/x", b"%d" % (part * 100 + i)) for i in range(100)], answer
            )
        got = collect(source, 1_000)

        assert all(answer.wait() == [ACCEPTED] * 100 for answer in answers)
    assert [m.payload for m in got] == [b"%d" % i for i in range(1_000)]


def test_a_broker_without_answers_ends_the_connection(system: RestartableBroker) -> None:
    system.broker.faults.suppress_acks = True
    answer = Answer()
    with opened(sink := system.sink(answer_timeout=0.3)):
        sink.send([guaranteed_message("a")], answer)

        assert answer.wait() == [RETRY]
        with pytest.raises(NotConnectedError, match=r"no answer for 0\.3 s|not connected"):
            sink.send([guaranteed_message("a")], Answer())


def test_a_window_that_never_opens_ends_the_connection(system: RestartableBroker) -> None:
    system.broker.faults.suppress_acks = True
    answer = Answer()
    with opened(sink := system.sink(answer_timeout=0.3)):
        sink.send([guaranteed_message("a") for _ in range(300)], answer)

        assert answer.wait() == [RETRY] * 300


def test_unanswered_messages_are_sent_again_unchanged(system: RestartableBroker) -> None:
    """A prepared message is reused, and the library repeats messages without a receipt."""
    system.broker.faults.suppress_acks = True
    source = system.source("a/>")
    with opened(source):
        pass
    answer = Answer()
    with opened(sink := system.sink(reconnect_attempts=30, reconnect_wait=0.1)):
        sink.send([guaranteed_message("a/x", b"%d" % i) for i in range(100)], answer)
        system.broker.faults.suppress_acks = False
        system.broker.drop_connections()

        assert answer.wait() == [ACCEPTED] * 100
    with opened(source):
        assert [m.payload for m in collect(source, 100)] == [b"%d" % i for i in range(100)]


def test_unanswered_messages_keep_their_topics_and_payloads(system: RestartableBroker) -> None:
    """The prepared message has had other topics and payloads since."""
    system.broker.faults.suppress_acks = True
    sent = [
        guaranteed_message(f"a/{n % 7}/{'x' * (n % 90)}", b"%d" % n * (1 if n % 3 else 500))
        for n in range(120)
    ] + [Message(f"a/text/{n}", f"é{n}", GUARANTEED) for n in range(60)]
    source = system.source("a/>")
    with opened(source):
        pass
    answer = Answer()
    with opened(sink := system.sink(reconnect_attempts=30, reconnect_wait=0.1)):
        sink.send(sent, answer)
        system.stop()
        system.broker.faults.suppress_acks = False
        vpn = system.broker.state.vpns["default"]
        vpn.publishers.clear()  # removes the names of flows, and the stored messages
        vpn.remove_queue(old := vpn.queues[system.queue.encode()])
        new = vpn.add_queue(old.name)
        for topic in old.topics:
            vpn.subscribe_queue(new, topic)
        system.start()

        assert answer.wait() == [ACCEPTED] * len(sent)
    with opened(source):
        got = collect(source, len(sent))
    assert [(m.address, m.payload) for m in got] == [(m.address, m.payload) for m in sent]


def test_a_message_past_the_brokers_limit_affects_no_other() -> None:
    """The library refuses it without a receipt, and would on every attempt."""
    with restartable(BrokerOptions(max_message=100_000)) as system:
        source, sink = system.source("a/>"), system.sink()
        with opened(source, sink):
            before, wrong, after = send(
                sink,
                guaranteed_message("a/1"),
                guaranteed_message("a/2", b"x" * 200_000),
                guaranteed_message("a/3"),
            )
            got = collect(source, 2)

    assert (before, after) == (ACCEPTED, ACCEPTED)
    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, "message-bytes")
    assert [message.address for message in got] == ["a/1", "a/3"]


def test_the_next_host_in_the_list_is_used_after_a_failure() -> None:
    """Queues are not replicated here; the test covers the order of the hosts."""
    with restartable() as first, restartable() as second:
        url = f"{first.broker.url},{second.broker.url}"
        source, sink = second.source("a/>", url=url), second.sink(url=url)
        with opened(source, sink):
            assert len(first.broker.clients()) == 2
            first.stop()
            wait_for_loss(source)
            reopen(source)
            reopen(sink)
            assert len(second.broker.clients()) == 2
            assert send(sink, guaranteed_message("a/x", b"1")) == [ACCEPTED]
            assert [message.payload for message in collect(source, 1)] == [b"1"]


def test_an_unreachable_first_host_is_skipped(system: RestartableBroker) -> None:
    with restartable() as away:
        url = f"{away.broker.url},{system.broker.url}"
    source, sink = system.source("a/>", url=url), system.sink(url=url)
    with opened(source, sink):
        assert send(sink, guaranteed_message("a/x")) == [ACCEPTED]
        assert len(collect(source, 1)) == 1


def test_a_shared_direct_subscription_loses_nothing_when_a_member_leaves(
    system: RestartableBroker,
) -> None:
    settings: dict[str, Any] = {"guaranteed": False, "share": "group"}
    stays, leaves = (system.source("a/>", **settings) for _ in range(2))
    with opened(stays, sink := system.sink()):
        with opened(leaves):
            send(sink, *(Message("a/x", b"%d" % i) for i in range(10)))
            assert len(collect(leaves, 5)) == len(collect(stays, 5)) == 5
        until(lambda: len(system.broker.clients()) == 2, "one has gone")
        send(sink, *(Message("a/x", b"%d" % i) for i in range(10)))

        assert len(collect(stays, 10)) == 10


def test_the_library_may_reconnect_by_itself(system: RestartableBroker) -> None:
    settings: dict[str, Any] = {"reconnect_attempts": 50, "reconnect_wait": 0.1}
    source, sink = system.source("a/>", **settings), system.sink(**settings)
    with opened(source, sink):
        send(sink, guaranteed_message("a/x", b"0"), guaranteed_message("a/x", b"1"))
        held = hold(source, 2)
        system.stop()
        system.start()
        answer = Answer()
        sink.send([guaranteed_message("a/x", b"2")], answer)
        assert answer.wait() == [ACCEPTED]
        for batch in held:
            batch.settle([ACCEPTED] * len(batch.messages))
        got = collect(source, 1)
        until(lambda: system.depth() == 0, "what was held is settled after all")

    assert [m.payload for m in got] == [b"2"]


def test_shutting_a_queue_ends_the_source(system: RestartableBroker) -> None:
    source = system.source("a/>")
    with opened(source):
        system.broker.shut_queue(system.queue)
        wait_for_loss(source)
        with pytest.raises(EndpointError, match="Queue Shutdown"):
            source.open()


def test_a_queue_that_is_shut_while_its_source_opens_ends_the_source(
    system: RestartableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive_async = _PersistentMessageReceiver.receive_async

    def shut_after(receiver: Any, handler: Any) -> None:  # noqa: ANN401  # the driver's
        receive_async(receiver, handler)
        system.broker.shut_queue(system.queue)
        until(receiver.stop_event.is_set, "the library has told of the end")

    monkeypatch.setattr(_PersistentMessageReceiver, "receive_async", shut_after)
    with opened(source := system.source("a/>")):
        wait_for_loss(source)


def test_breaks_and_restarts_lose_no_message(system: RestartableBroker) -> None:
    """A source receives every message that a sink settled as accepted."""
    source, sink = system.source("a/>"), system.sink()
    accepted: set[bytes] = set()
    seen: set[bytes] = set()
    source.open()
    sink.open()
    for number in range(12):
        batch = [guaranteed_message("a/x", b"%d-%d" % (number, i)) for i in range(50)]
        answer = Answer()
        try:
            sink.send(batch, answer)
            if number % 4 == 1:
                system.broker.drop_connections()
            elif number % 4 == 3:
                system.stop()
                system.start()
            settlements = answer.wait()
        except NotConnectedError:
            settlements = [RETRY] * 50
        accepted |= {
            _raw(m)
            for m, settlement in zip(batch, settlements, strict=True)
            if settlement is ACCEPTED
        }
        reopen(sink)
    while accepted - seen:
        try:
            batch_in = receive(source)
        except NotConnectedError:
            reopen(source)
            continue
        seen |= {_raw(m) for m in batch_in.messages}
        batch_in.settle([ACCEPTED] * len(batch_in.messages))
    source.close()
    sink.close()

    assert len(accepted) >= 300
    assert accepted <= seen


def test_the_repr_of_settings_contains_no_password(system: RestartableBroker) -> None:
    assert "'p'" not in repr(system.settings)
    assert GUARANTEED.mode is system.settings.mode
    assert system.settings.broker_key == f"{system.broker.url}/default"
    assert Headers().mode is not system.settings.mode
    with opened(source := system.source("a")):
        assert source.receive(QUIET) is None
