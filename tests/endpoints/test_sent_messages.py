"""The window of sent messages that the sinks of NATS and RabbitMQ share."""

from __future__ import annotations

from threading import Thread

from gateway.endpoints.sent_messages import SendWindow, SentBatch
from gateway.model.outcome import RETRY, Settlement


def test_a_connection_that_ends_while_messages_are_published_leaves_none_without_an_answer() -> (
    None
):
    answers: list[list[Settlement]] = []
    window: SendWindow[str] = SendWindow(10)
    ending = Thread(target=window.fail)

    def publish(_numbers: range) -> None:
        ending.start()
        ending.join(0.2)  # it waits for the window, or has looked before the messages were noted

    batch = SentBatch(1, lambda settlements: answers.append([*settlements]))
    window.send(batch, [(0, "a")], lambda: None, publish)
    ending.join()
    assert answers == [[RETRY]]


def test_an_answer_that_comes_while_messages_are_published_finds_its_message() -> None:
    window: SendWindow[str] = SendWindow(10)
    found: list[str | None] = []
    answer = Thread(target=lambda: found.append(window.content(1)))

    def publish(_numbers: range) -> None:
        answer.start()
        answer.join(0.2)  # it waits for the window, or has looked before the messages were noted

    window.send(SentBatch(1, lambda _: None), [(0, "a")], lambda: None, publish)
    answer.join()
    assert found == ["a"]


def test_batches_are_answered_in_the_order_of_their_sending() -> None:
    """RabbitMQ confirms a message first whose queue had a consumer for it."""
    window: SendWindow[str] = SendWindow(10)
    answered: list[str] = []
    for name in "abc":
        batch = SentBatch(2, lambda _settlements, name=name: answered.append(name))  # type: ignore[misc]  # bound now
        window.send(batch, [(0, name), (1, name)], lambda: None, lambda _numbers: None)

    window.settle([3, 4, 5])
    assert answered == []
    window.settle([1])
    window.settle([2], RETRY)
    assert answered == ["a", "b"]
    window.fail()
    assert answered == ["a", "b", "c"]
