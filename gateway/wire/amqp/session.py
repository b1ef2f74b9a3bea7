"""A session of AMQP 1.0 with its links: windows, credit, deliveries and their outcomes.

    frame      to `receive`; what it means is a call of the link that it concerns
    transfer   from `Sender.send`, as soon as the link has credit and the session a window
    outcome    of deliveries, by their numbers: to `Sender.answered`, in the order that came
    message    to `Receiver.arrived`, once its last frame is there; what is longer than
               `max_size` is cut off, and only counted

No socket and no clock. Mutable: owned by the thread of the connection.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gateway.errors import WireError
from gateway.wire.amqp import frames
from gateway.wire.amqp.frames import encode_frame, error_text
from gateway.wire.amqp.values import FALSE, TRUE, Described, boolean, composite, string, ubyte, uint

FRAME: Final = 65_536  # bytes of the longest frame that is taken
HANDLES: Final = 255  # the highest handle
SERIAL: Final = 1 << 32  # numbers of deliveries and frames begin again here
_HALF: Final = SERIAL // 2
_TRANSFER_ROOM: Final = 64  # bytes of a frame beside the part of a message in it
_WINDOW: Final = 1 << 30  # frames that are sent ahead; the peer's window limits them
_START: Final = b"\x00\x53\x14\xc0"  # of a transfer: a list of less than 256 bytes
_IDS: Final = struct.Struct(">BIHI")  # delivery-id, and the same bytes as delivery-tag
Answered: TypeAlias = Callable[[Sequence[int], Described | None], None]


@dataclass(slots=True, eq=False)
class Link:
    """A link; `detached` gets condition and text of the peer, once it does not exist any more.

    `fields` are what its side has in an `attach`, from the source on. Mutable.
    """

    name: str
    fields: Sequence[bytes | None]
    detached: Callable[[str, str], None]
    attached: Callable[[], None] = lambda: None
    handle: int = -1
    delivery_count: int = 0
    credit: int = 0
    is_attached: bool = False
    is_leaving: bool = False  # our `detach` was sent
    settled: bool = False  # its messages have no outcome
    max_message: int = 0  # bytes that the peer takes; 0: it has no limit


@dataclass(slots=True, eq=False)
class Sender(Link):
    """Sends messages; `answered` gets the outcome of their numbers. Mutable."""

    answered: Answered = lambda _numbers, _state: None
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque)
    offset: int = 0  # bytes of the first waiting message that were sent
    delivery: int = 0  # its number on the wire


@dataclass(slots=True, eq=False)
class Receiver(Link):
    """Receives messages; `arrived` gets their numbers, their first bytes and their size. Mutable.

    The first bytes are all of them up to `max_size`.
    """

    arrived: Callable[[int, bytes, int], None] = lambda _number, _data, _size: None
    starving: Callable[[], None] = lambda: None  # a message has begun, and the window is used up
    max_size: int = 0
    source: Described | None = None  # as the peer has it
    delivery: int | None = None  # the one whose frames come
    parts: list[bytes] = field(default_factory=list)
    size: int = 0


class Session:
    """The session; `write` takes a frame, `max_frame` is the longest one that the peer takes."""

    def __init__(
        self, write: Callable[[bytes], object], max_frame: int, ended: Callable[[str, str], None]
    ) -> None:
        self._write, self._ended = write, ended
        self._room = max_frame - _TRANSFER_ROOM
        self._links: dict[int, Link] = {}  # by our handles
        self._of_peer: dict[int, Link] = {}  # by those of the peer
        self._next_out = self._next_delivery = 0
        self._peer_window = 0
        self._next_in = self._last_delivery = -1
        self._sent: dict[int, tuple[Sender, int]] = {}  # by their numbers on the wire
        self.window = 0  # frames that the peer may send
        self.is_begun = self.is_over = False

    @property
    def sent(self) -> int:
        """The number of the next frame with a message."""
        return self._next_out

    def begin(self) -> None:
        fields = [None, uint(0), uint(0), uint(_WINDOW), uint(HANDLES)]
        self._write(encode_frame(frames.BEGIN, fields))

    def end(self) -> None:
        self.is_over = True
        self._write(encode_frame(frames.END, []))

    def attach(self, link: Link, properties: bytes | None = None) -> None:
        """Ask the peer for a link; the answer is a call of `attached` or `detached`."""
        handle = next(n for n in range(HANDLES + 1) if n not in self._links)
        link.handle = handle
        self._links[handle] = link
        is_receiver = isinstance(link, Receiver)
        count = None if is_receiver else uint(0)
        fields = [
            string(link.name),
            uint(handle),
            boolean(is_receiver),
            ubyte(link.settled),
            ubyte(0),
            *link.fields,
            None,
            None,
            count,
            None,
            None,
            None,
            properties,
        ]
        self._write(encode_frame(frames.ATTACH, fields))

    def detach(self, link: Link) -> None:
        """End a link; the peer answers with a `detach`."""
        link.detached = lambda _condition, _text: None
        link.is_leaving = True
        self._write(encode_frame(frames.DETACH, [uint(link.handle), TRUE]))

    def send(self, link: Sender, messages: Iterable[tuple[int, bytes]]) -> None:
        """Send messages with their numbers as soon as the peer takes them."""
        link.waiting.extend(messages)
        self._send_waiting(link)

    def grant(self, link: Receiver, credit: int, window: int) -> None:
        """Let the peer send so many messages over a link, and frames over the session."""
        self.window, link.credit = max(window, self.window), credit
        self._flow([uint(link.handle), uint(link.delivery_count), uint(credit)])

    def settle(self, first: int, last: int, state: bytes) -> None:
        """Tell the peer the outcome of the messages that came with these numbers."""
        fields = [TRUE, uint(first), uint(last), TRUE, state]
        self._write(encode_frame(frames.DISPOSITION, fields))

    def receive(self, frame: frames.Frame) -> None:
        """Handle a frame.

        Raises:
            WireError: the peer breaks the rules.
        """
        match frame.performative:
            case frames.Begin() as begin if not self.is_begun:
                self.is_begun = True
                self._next_in = begin.next_outgoing_id or 0
                self._peer_window = begin.incoming_window or 0
            case frames.Attach() as attach:
                self._attached(attach)
            case frames.LinkFlow() as flow:
                self._flowed(flow)
            case frames.Transfer() as transfer:
                self._transferred(transfer, frame.payload)
            case frames.Disposition() as disposition:
                self._disposed(disposition)
            case frames.Detach() as detach:
                self._detached(detach)
            case frames.SessionEnd() as end:
                self._end(end)
            case other:
                raise WireError(f"amqp: the server sent `{type(other).__name__.lower()}` again")

    def _flow(self, fields: Sequence[bytes]) -> None:
        session = [uint(self._next_in), uint(self.window), uint(self._next_out), uint(_WINDOW)]
        self._write(encode_frame(frames.FLOW, [*session, *fields]))

    def _attached(self, attach: frames.Attach) -> None:
        if not self.is_begun:
            raise WireError("amqp: the server attached a link before it began the session")
        of_sender = not attach.role  # the peer has the other side
        found = (
            link
            for link in self._links.values()
            if link.name == attach.name and isinstance(link, Receiver) == of_sender
        )
        link = next(found, None)
        if link is None or link in self._of_peer.values() or attach.handle is None:
            raise WireError(f"amqp: the server attached a link {attach.name!r:.80} of its own")
        self._of_peer[attach.handle] = link
        link.max_message = attach.max_message_size or 0
        if isinstance(link, Receiver):
            link.delivery_count = attach.initial_delivery_count or 0
            link.source = attach.source
        if (attach.source if of_sender else attach.target) is not None:  # else it is refused
            link.is_attached = True
            link.attached()

    def _link(self, handle: int | None) -> Link:
        link = None if handle is None else self._of_peer.get(handle)
        if link is None:
            raise WireError(f"amqp: the server has attached no link with the handle {handle}")
        return link

    def _flowed(self, flow: frames.LinkFlow) -> None:
        begun = flow.next_incoming_id or 0
        self._peer_window = _difference(begun + (flow.incoming_window or 0), self._next_out)
        link = None if flow.handle is None else self._link(flow.handle)
        if isinstance(link, Sender):
            limit = (flow.delivery_count or 0) + (flow.link_credit or 0)
            link.credit = max(0, _difference(limit, link.delivery_count))
        for each in tuple(self._links.values()):
            if isinstance(each, Sender):
                self._send_waiting(each)
        if isinstance(link, Sender) and flow.drain:
            link.delivery_count = (link.delivery_count + link.credit) % SERIAL
            link.credit = 0
            self._flow([uint(link.handle), uint(link.delivery_count), uint(0)])
        elif flow.echo:
            self._flow([])

    def _send_waiting(self, link: Sender) -> None:
        waiting = link.waiting
        while waiting and self._peer_window > 0 and (link.credit > 0 or link.offset):
            number, data = waiting[0]
            if not link.offset:
                link.delivery, self._next_delivery = self._next_delivery, _next(self._next_delivery)
                link.credit -= 1
                link.delivery_count = _next(link.delivery_count)
                if not link.settled:
                    self._sent[link.delivery] = link, number
            end = link.offset + self._room
            more = end < len(data)
            self._transfer(link, data[link.offset : end] if link.offset or more else data, more)
            link.offset = end if more else 0
            if not more:
                waiting.popleft()

    def _transfer(self, link: Sender, part: bytes, more: bool) -> None:
        self._peer_window -= 1
        self._next_out = _next(self._next_out)
        delivery = link.delivery
        fields = b"".join(
            (
                uint(link.handle),
                _IDS.pack(0x70, delivery, 0xA004, delivery),
                b"\x43",
                boolean(link.settled),
                TRUE if more else b"",
            )
        )
        count = 6 if more else 5
        head = _START + bytes((len(fields) + 1, count)) + fields
        size = frames.HEAD.size + len(head) + len(part)
        self._write(frames.HEAD.pack(size, 2, frames.AMQP, 0) + head + part)

    def _transferred(self, transfer: frames.Transfer, payload: bytes) -> None:
        link = self._link(transfer.handle)
        self.window -= 1
        self._next_in = _next(self._next_in)
        if self.window < 0:
            raise WireError("amqp: the server sent more frames than the window had")
        if not isinstance(link, Receiver):
            raise WireError("amqp: the server sent a message to a link that sends")
        if link.delivery is None:
            link.delivery = self._begin_delivery(link, transfer.delivery_id)
        elif transfer.delivery_id not in {None, link.delivery}:
            raise WireError("amqp: the server sent a message within another one")
        if (room := link.max_size - link.size) > 0:
            link.parts.append(payload if len(payload) <= room else payload[:room])
        link.size += len(payload)
        if transfer.more and not transfer.aborted:
            if not self.window:
                link.starving()
            return
        number, parts, size = link.delivery, link.parts, link.size
        link.delivery, link.parts, link.size = None, [], 0
        if not transfer.aborted:
            link.arrived(number, parts[0] if len(parts) == 1 else b"".join(parts), size)

    def _begin_delivery(self, link: Receiver, delivery: int | None) -> int:
        if delivery is None or not 0 < _difference(delivery, self._last_delivery) < _HALF:
            raise WireError(f"amqp: the server sent a message with the number {delivery}")
        link.credit -= 1
        link.delivery_count = _next(link.delivery_count)
        if link.credit < 0:
            raise WireError("amqp: the server sent more messages than were asked for")
        self._last_delivery = delivery
        return delivery

    def _disposed(self, disposition: frames.Disposition) -> None:
        if not disposition.role:
            return  # about messages that came: they are settled by their receiver
        state, first = disposition.state, disposition.first
        is_final = state is not None and state.descriptor != frames.RECEIVED
        if first is None or not (disposition.settled or is_final):
            return
        last = first if disposition.last is None else disposition.last
        answers: dict[Sender, list[int]] = {}
        for delivery in self._deliveries(first, last):
            link, number = self._sent.pop(delivery)
            answers.setdefault(link, []).append(number)
        if not disposition.settled:
            fields = [FALSE, uint(first), uint(last), TRUE]
            self._write(encode_frame(frames.DISPOSITION, fields))
        for link, numbers in answers.items():
            link.answered(numbers, state)

    def _deliveries(self, first: int, last: int) -> list[int]:
        """Return the numbers of a range that have no answer; a peer may name any range."""
        span = (last - first) % SERIAL
        if span < len(self._sent):
            numbers: Iterator[int] = ((first + n) % SERIAL for n in range(span + 1))
            return [each for each in numbers if each in self._sent]
        return [each for each in self._sent if (each - first) % SERIAL <= span]

    def _detached(self, detach: frames.Detach) -> None:
        link = self._link(detach.handle)
        self._of_peer = {each: known for each, known in self._of_peer.items() if known is not link}
        self._links.pop(link.handle, None)
        if not link.is_leaving:
            self._write(encode_frame(frames.DETACH, [uint(link.handle), TRUE]))
        link.is_attached = False
        link.detached(*error_text(detach.error))

    def _end(self, end: frames.SessionEnd) -> None:
        if not self.is_over:
            self.is_over = True
            self._write(encode_frame(frames.END, []))
        self._ended(*error_text(end.error))


def _next(number: int) -> int:
    return (number + 1) % SERIAL


def _difference(later: int, earlier: int) -> int:
    """Return how much later a number is; below zero if it is earlier."""
    return (later - earlier + _HALF) % SERIAL - _HALF


def terminus(code: int, address: str | None, *more: bytes | None) -> bytes:
    """Return a source or a target with an address; `more` are its fields from the second one on."""
    return composite(code, [None if address is None else string(address), *more])


ACCEPT: Final = composite(frames.ACCEPTED, [])
REJECT: Final = composite(frames.REJECTED, [])
