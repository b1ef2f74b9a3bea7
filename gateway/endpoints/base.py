"""What the runtime needs from a messaging system, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from gateway.model.message import Message
from gateway.model.outcome import Settlement

Settle: TypeAlias = Callable[[Sequence[Settlement]], None]


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a source listens to: a pattern in the endpoint's own dialect."""

    pattern: str
    exclude_retained: bool = False  # messages the broker kept from before are not wanted
    selector: str = ""  # a JMS message selector, for brokers that evaluate it themselves


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that were already waiting, and the duty to settle each of them exactly once.

    `settle` takes one settlement per message, in their order, and may be called from any thread
    and long after the next batch was received. A retried message comes again from a later
    `receive`, marked as redelivered and before all that is newer than it. Once the connection
    that brought the batch is gone `settle` does nothing: the broker delivers again what it must.

    `identities` is for systems whose brokers number messages without telling their receivers in a
    header: one for each message, the same when it comes again; empty where headers say it.
    """

    messages: Sequence[Message]
    settle: Settle
    identities: Sequence[str] = ()


class Source(Protocol):
    def open(self) -> None:
        """Connect and subscribe. Safe to call again after NotConnectedError.

        Raises:
            NotConnectedError: the broker cannot be reached now.
            EndpointError: it refused us for good (bad credentials, a subscription not allowed).
        """

    def receive(self, timeout: float) -> Batch | None:
        """Return what has arrived, or None when `timeout` seconds pass without a message.

        Raises:
            NotConnectedError: the broker is gone; call `open` again.
        """

    def close(self) -> None:
        """Release everything. Never raises; safe to call twice and from another thread."""


class Sink(Protocol):
    def open(self) -> None:
        """Connect. Safe to call again after NotConnectedError. Raises as `Source.open` does."""

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        """Hand the messages over; `settled` is called once, when the broker has answered for all.

        Returns before the answers arrive, so that many batches are under way; `settled` comes
        from the driver's thread, or from this one, with one settlement per message. When the
        connection breaks or is closed first, it reports `RETRY` for every message that has no
        answer. Blocks only while the driver's own window is full; `close` frees it. Any thread
        may call it. Without messages it only says whether the connection is known to be gone.

        Raises:
            NotConnectedError: unknown which arrived; send again after `open`. `settled` is not
                called then.
        """

    def close(self) -> None:
        """Wait for nothing, release everything. Never raises; safe to call twice."""


@runtime_checkable
class Counting(Protocol):
    """A source or sink that tells more of its work: by word, how often it happened so far.

    The words stay the same as long as it lives; any thread may read them.
    """

    @property
    def counts(self) -> Mapping[str, int]: ...
