"""The interface between the runtime and a messaging system: sources, sinks and their batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import UNWRITABLE
from gateway.model.message import Message
from gateway.model.outcome import Settlement, rejected

Settlements: TypeAlias = Sequence[Settlement]
Settle: TypeAlias = Callable[[Settlements], None]


def unwritable(endpoint: str, error: Exception) -> Settlement:
    """Return the refusal of a message for an error while it was written, foreseen or not.

    Every such error concerns that message, and not the connection.
    """
    if isinstance(error, TranslationError):
        text = str(error) if error.text else f"{endpoint}: {error.reason}"
        return rejected(error.rule, text)
    return rejected(UNWRITABLE, f"{endpoint}: {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of a source: a pattern in the dialect of its endpoint."""

    pattern: str
    exclude_retained: bool = False  # leave out messages that the broker retained earlier
    selector: str = ""  # a JMS message selector, for brokers that evaluate it themselves
    # the retained flag is to mark messages retained earlier, and no others
    marks_retained: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages received together; each of them must be settled exactly once.

    `settle` takes one settlement per message, in their order. Any thread may call it, also long
    after the next batch was received. A later `receive` returns a retried message again, marked as
    redelivered and before every newer message. A rejected one is acknowledged like an accepted one:
    the gateway keeps its dead letter, and the broker is not to keep another. After the connection
    that brought the batch is gone, `settle` has no effect: the broker delivers again what it must.

    `identities` is for brokers that number messages without a header that carries the number: one
    identity per message, the same at each delivery; empty where headers carry it.

    Without `awaited` no broker learns of the settlements, so they may come a little later, with
    those of other batches: the rows of several are written at once.
    """

    messages: Sequence[Message]
    settle: Settle
    identities: Sequence[str] = ()
    awaited: bool = True


def address_of(endpoint: Source | Sink) -> str:
    """Return HOST:PORT of the connection, or of the last attempt; empty where a driver has none.

    It is an optional member of a source or sink that may have several addresses.
    """
    return str(getattr(endpoint, "address", ""))


class Source(Protocol):
    """Receives the messages of its subscriptions over one connection."""

    def open(self) -> None:
        """Connect and subscribe. May be called again after NotConnectedError.

        Raises:
            NotConnectedError: the broker cannot be reached now.
            EndpointError: the broker refuses permanently (bad credentials, a subscription that is
                not allowed).
        """

    def receive(self, timeout: float) -> Batch | None:
        """Return the messages that have arrived, or None after `timeout` seconds without any.

        Raises:
            NotConnectedError: the connection is lost; call `open` again.
        """

    def close(self) -> None:
        """Release everything. Never raises; may be called twice and from another thread."""


@runtime_checkable
class EndsIntake(Protocol):
    """A source whose broker keeps nothing, and that can end its intake before it closes."""

    def end_intake(self) -> None:
        """Take in only what the broker has sent before an answer to this call, which comes later.

        The thread that calls `receive` calls it once. `receive` returns what was taken in, however
        fast the broker sends. It has no effect on a broker that keeps messages.

        Raises:
            NotConnectedError: the connection is lost.
        """

    @property
    def intake_ended(self) -> bool:
        """Whether the answer has come: `receive` waits for nothing more.

        It is true before `end_intake` where that has no effect.
        """


@runtime_checkable
class Removes(Protocol):
    """A source that knows better than its settings where it takes messages from others.

    It has subscriptions of both sorts, or its broker decides.
    """

    def removes(self, address: str) -> bool:
        """Return whether a message that came with this address is gone for others once settled."""


@runtime_checkable
class CountsBacklog(Protocol):
    """A source that may know how many messages wait for it."""

    @property
    def backlog(self) -> int | None:
        """Messages that wait at the broker, or here and are not settled; None if not known."""


class NamesAnswer(NamedTuple):
    """An answer of a broker about the names of a target; `missing`: it takes no message there."""

    text: str
    missing: bool = False


@runtime_checkable
class AnswersForNames(Protocol):
    """A sink that can ask its broker, without a message, what takes the messages of some names."""

    def ask_about(self, patterns: Sequence[str]) -> Iterator[NamesAnswer]:
        """Yield what the broker says of the names that each of `patterns` selects."""


@runtime_checkable
class AnswersForPartitions(Protocol):
    """A sink that can ask its broker, without a message, for a partition that a route names."""

    def ask_about_partitions(self, chosen: Sequence[tuple[str, int]]) -> Iterator[NamesAnswer]:
        """Yield what lacks a partition, of the names that a pattern selects; pattern and number."""


@runtime_checkable
class KeyedIds(Protocol):
    """A sink whose broker drops a repeated id: its ids follow from a secret of the gateway.

    Whoever can name the next id can send a message with it first, and the real one is a repeat.
    """

    id_key: bytes


@dataclass(frozen=True, slots=True)
class Statement:
    """A retained message about a connection: its name, and its payloads."""

    name: str
    up: bytes
    down: bytes


@runtime_checkable
class TellsState(Protocol):
    """A sink that tells a state at its broker, and leaves `down` as the will of its connection."""

    statement: Statement | None  # set before the first `open`

    def tell(self, *, connected: bool) -> None:
        """Publish the state unless it was the last one on this connection. Never raises."""


@runtime_checkable
class ShowsLoss(Protocol):
    """A sink that shows that its broker began empty, so that nothing is retained there."""

    began_empty: bool  # since the last `restored`, as the last `open` found

    def restored(self) -> None:
        """Note that the retained messages have been sent again. Never raises."""


class Sink(Protocol):
    """Sends messages over one connection."""

    def open(self) -> None:
        """Connect. May be called again after NotConnectedError. Raises as `Source.open` does."""

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        """Send the messages; `settled` is called once, when the broker has answered for all.

        Return before the answers arrive, so that many batches are in flight. `settled` gets one
        settlement per message, in the driver's thread or in the calling one. When the connection
        breaks or is closed, every message without an answer is settled as `RETRY`; one that the
        broker has no room for, as `NO_ROOM`. Block only
        while the driver's own window is full; `close` ends that. Any thread may call it. Without
        messages it only checks whether the connection is known to be lost.

        Raises:
            NotConnectedError: unknown which messages arrived; send again after `open`. `settled`
                is not called then.
        """

    def close(self) -> None:
        """Release everything without waiting. Never raises; may be called twice."""
