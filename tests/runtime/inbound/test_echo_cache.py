"""Echoes from brokers that carry no origin path."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from gateway.model.dead_letter_rule import PUBLISH_ACL
from gateway.model.message import NO_HEADERS, Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected
from gateway.runtime.delivery import echoes
from gateway.runtime.delivery.echoes import COPY_LIFETIME, MAX_SIZE, copy_size
from gateway.runtime.inbound import echo_cache
from gateway.runtime.inbound.echo_cache import EchoCache
from tests.model.test_memory_size import taken
from tests.waiting import PATIENCE, until

BROKER = "mqtt://plant"
MAX_COPY_BYTES = 350


class Clock:
    """A clock in seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(echo_cache, "monotonic", clock)
    return clock


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """A small limit of copies, so that the test is fast."""
    size = copy_size((BROKER, "a/b", b""), ("g/r",))
    monkeypatch.setattr(echoes, "MAX_SIZE", 100 * size)
    return 100


def copy(payload: str, *origin: str) -> Message:
    return Message("a/b", payload.encode(), replace(NO_HEADERS, origin=origin))


def send(cache: EchoCache, messages: Sequence[Message], answer: Settlement = ACCEPTED) -> None:
    """Send copies, which get this answer."""
    cache.note_sent(BROKER, messages)
    cache.note_answers(BROKER, messages, [answer] * len(messages))


@contextmanager
def asking(cache: EchoCache, message: Message) -> Iterator[list[tuple[str, ...]]]:
    """Ask in another thread whether a message is an echo; its answer is there at the end."""
    found: list[tuple[str, ...]] = []
    thread = threading.Thread(target=lambda: found.append(cache.take_origin(BROKER, message)))
    thread.start()
    until(lambda: cache.undecided == 1)
    assert not found
    yield found
    thread.join(PATIENCE)


def take_back(cache: EchoCache, payload: str) -> tuple[str, ...]:
    return cache.take_origin(BROKER, copy(payload))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_echo_is_recognised_once_for_each_copy_sent(times: int) -> None:
    cache = EchoCache()
    for number in range(times):
        send(cache, [copy("x", f"gateway/{number}")])
    origins = [take_back(cache, "x") for _ in range(times + 1)]
    assert origins == [*((f"gateway/{number}",) for number in range(times)), ()]


def test_a_copy_can_be_sent_again_after_it_came_back() -> None:
    cache = EchoCache()
    for number in range(3):
        send(cache, [copy("x", f"g/{number}"), copy("x", f"h/{number}")])
        assert [take_back(cache, "x") for _ in range(3)] == [(f"g/{number}",), (f"h/{number}",), ()]


@pytest.mark.parametrize("answer", [RETRY, rejected(PUBLISH_ACL, "not allowed")], ids=str)
def test_a_copy_that_was_not_accepted_is_forgotten(answer: Settlement) -> None:
    """An echo of it is treated as a message: cheaper than a message treated as an echo."""
    cache = EchoCache()
    send(cache, [copy("x", "g/r")], answer)
    send(cache, [copy("y", "g/r")])
    assert [take_back(cache, "x"), take_back(cache, "y")] == [(), ("g/r",)]


@pytest.mark.parametrize(
    ("answer", "origin"),
    [(ACCEPTED, ("g/r",)), (RETRY, ()), (rejected(PUBLISH_ACL, "not allowed"), ())],
    ids=["accepted", "lost", "rejected"],
)
def test_a_message_that_equals_an_unanswered_copy_waits_for_its_answer(
    answer: Settlement, origin: tuple[str, ...]
) -> None:
    cache, sent = EchoCache(), [copy("x", "g/r")]
    cache.note_sent(BROKER, sent)
    assert take_back(cache, "y") == ()  # no other message waits
    with asking(cache, copy("x")) as found:
        cache.note_answers(BROKER, sent, [answer])
    assert found == [origin]
    assert take_back(cache, "x") == ()


def test_a_message_waits_for_the_last_of_several_equal_copies() -> None:
    cache, sent = EchoCache(), [copy("x", "g/r")]
    cache.note_sent(BROKER, sent * 2)
    with asking(cache, copy("x")) as found:
        cache.note_answers(BROKER, sent, [RETRY])
        assert not found
        cache.note_answers(BROKER, sent, [ACCEPTED])
    assert found == [("g/r",)]


def test_a_message_with_another_broker_name_or_payload_is_no_echo() -> None:
    cache = EchoCache()
    send(cache, [copy("x", "g/r")])
    assert take_back(cache, "y") == ()
    assert cache.take_origin("mqtt://other", copy("x")) == ()
    assert cache.take_origin(BROKER, Message("a/c", b"x")) == ()
    assert take_back(cache, "x") == ("g/r",)


def test_an_expired_copy_is_skipped(clock: Clock) -> None:
    cache = EchoCache()
    send(cache, [copy("x", "g/old")])
    clock.now = COPY_LIFETIME - 1
    send(cache, [copy("x", "g/new")])
    clock.now = COPY_LIFETIME + 1
    assert [take_back(cache, "x"), take_back(cache, "x")] == [("g/new",), ()]


def test_the_least_recently_used_copy_is_evicted_first(small_limit: int) -> None:
    cache = EchoCache()
    send(cache, [copy("first", "g/r"), copy("second", "g/r")])
    send(cache, [copy("first", "g/r")])
    send(cache, [copy(f"{number}", "g/r") for number in range(small_limit - 2)])
    assert [take_back(cache, "second"), take_back(cache, "first")] == [(), ("g/r",)]


def test_a_recognised_echo_frees_its_place(small_limit: int) -> None:
    cache, each = EchoCache(), range(10)
    for _ in range(2):
        send(cache, [copy(f"{number}", "g/r") for number in each])
    assert {take_back(cache, f"{number}") for number in [*each, *each]} == {("g/r",)}
    send(cache, [copy(f"later {number}", "g/r") for number in range(small_limit)])
    assert take_back(cache, "later 0") == ("g/r",)


@pytest.mark.parametrize("times", [1, 2])
def test_the_number_of_copies_is_limited(small_limit: int, times: int) -> None:
    cache = EchoCache()
    for _ in range(times):
        cache.note_sent(
            BROKER, [copy(f"old {number}", "g/r") for number in range(small_limit // times)]
        )
    send(cache, [copy(f"{number}", "g/r") for number in range(small_limit)])
    send(cache, [copy("last", "g/r")])
    assert [take_back(cache, each) for each in ("0", "1", "last")] == [(), ("g/r",), ("g/r",)]


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        pytest.param("a/b", ("g/r",), id="usual", marks=pytest.mark.nightly),
        pytest.param("x" * 60_000, ("g/r",), id="long-names"),
        pytest.param("a/b", ("x" * 60_000,), id="long-origins"),
        pytest.param("a/b", ("",) * 30_000, id="origins-of-many-hops", marks=pytest.mark.nightly),
    ],
)
def test_the_memory_of_the_copies_is_limited(
    monkeypatch: pytest.MonkeyPatch, name: str, origin: tuple[str, ...]
) -> None:
    """Matters because a broker without return routes fills the cache to its limit."""
    is_usual = len(name) + sum(map(len, origin)) + len(origin) < 100
    monkeypatch.setattr(echoes, "MAX_SIZE", MAX_SIZE // 8)

    def fill() -> EchoCache:
        cache = EchoCache()
        for number in range(30_000 if is_usual else 2_000):
            headers = replace(NO_HEADERS, origin=(*origin[:-1], origin[-1] + str(number)))
            send(cache, [Message(name + str(number), b"x", headers)])
        return cache

    assert taken(fill) < MAX_SIZE // 8
