"""The vendor's C library under its Python classes: what they do not offer, or do slowly.

Reading a whole message at once is faster than one call a field, and true: the Python classes cut
byte arrays in maps at their first NUL, and they show no reply-to. They also copy every message
they send into an object that only the cyclic collector frees, and pass every receipt through two
more threads. So what is done for each message is done here, with handles that they hold; that
includes giving a received message's memory back at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, TypeAlias

import solace

from gateway.errors import EndpointError

_OK: Final = 0
_TOPIC: Final = 0  # kind of a destination

Pointer: TypeAlias = ctypes.c_void_p


class Sent(IntEnum):
    """What the library says when it is given a message to send; anything else is a failure."""

    OK = 0
    WOULD_BLOCK = 1


class Mode(IntEnum):
    DIRECT = 0x00
    PERSISTENT = 0x10


class Answer(IntEnum):
    """How a received message is settled."""

    ACCEPTED = 0
    FAILED = 2
    REJECTED = 3


class Destination(ctypes.Structure):
    """A topic as the library takes it; made once and used for many messages."""

    _fields_ = (("kind", ctypes.c_int), ("name", ctypes.c_char_p))


class _ErrorInfo(ctypes.Structure):
    _fields_ = (("subcode", ctypes.c_int), ("code", ctypes.c_int), ("text", ctypes.c_char * 256))


_U32, _INT, _BYTES = ctypes.c_uint32, ctypes.c_int, ctypes.c_char_p
_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "msg_getSMFPtr": (Pointer, ctypes.POINTER(Pointer), ctypes.POINTER(_U32)),
    "msg_getMsgId": (Pointer, ctypes.POINTER(ctypes.c_uint64)),
    "msg_setBinaryAttachment": (Pointer, _BYTES, _U32),
    "msg_setBinaryAttachmentString": (Pointer, _BYTES),
    "msg_setReplyTo": (Pointer, ctypes.POINTER(Destination), ctypes.c_size_t),
    "msg_setDestination": (Pointer, ctypes.POINTER(Destination), ctypes.c_size_t),
    "msg_setSenderTimestamp": (Pointer, ctypes.c_int64),
    "msg_setCorrelationId": (Pointer, _BYTES),
    "msg_setApplicationMessageId": (Pointer, _BYTES),
    "msg_setDeliveryMode": (Pointer, _U32),
    "msg_setCorrelationTagPtr": (Pointer, _BYTES, _U32),
    "session_sendMsg": (Pointer, Pointer),
    "flow_settleMsg": (Pointer, ctypes.c_uint64, _INT),
}


class Native:
    """The C library, looked up once. Mutable: its cells are filled by one thread at a time."""

    def __init__(self) -> None:
        """Raises: EndpointError: the installed version lacks what is needed."""
        found = {name: _function(name, takes) for name, takes in _SIGNATURES.items()}
        self._frame, self._id = found["msg_getSMFPtr"], found["msg_getMsgId"]
        self._bytes = found["msg_setBinaryAttachment"]
        self._text = found["msg_setBinaryAttachmentString"]
        self._reply_to, self._topic = found["msg_setReplyTo"], found["msg_setDestination"]
        self._time, self._mode = found["msg_setSenderTimestamp"], found["msg_setDeliveryMode"]
        self._correlation = found["msg_setCorrelationId"]
        self._message_id = found["msg_setApplicationMessageId"]
        self._tag, self._settle = found["msg_setCorrelationTagPtr"], found["flow_settleMsg"]
        self.send: Callable[[Pointer, Pointer], int] = found["session_sendMsg"]
        self._last_error = _function("getLastErrorInfo", (), ctypes.POINTER(_ErrorInfo))
        self._subcode = _function("subCodeToString", (_INT,), _BYTES)
        self._start, self._size, self._number = Pointer(), _U32(), ctypes.c_uint64()
        self._cells = ctypes.byref(self._start), ctypes.byref(self._size)
        self._number_cell = ctypes.byref(self._number)

    def read(self, message: Any) -> bytes:  # noqa: ANN401  # the driver's message
        """The bytes of a received message, or none when the library does not have them."""
        if self._frame(message.solace_message.msg_p, *self._cells) != _OK:
            return b""
        return ctypes.string_at(self._start.value or 0, self._size.value)

    def read_id(self, message: Any) -> int:  # noqa: ANN401
        """The id by which a received message is settled; 0 when it is a direct one."""
        if self._id(message.solace_message.msg_p, self._number_cell) != _OK:
            return 0
        return self._number.value

    def release(self, message: Any) -> None:  # noqa: ANN401
        """Free a message of the driver; nothing may be done with it afterwards.

        Its methods are in a table of its own, a circle that would keep it until a collection.
        """
        inner = message.solace_message
        inner.cleanup()
        vars(inner).clear()

    def settle(self, flow: Pointer, message_id: int, answer: Answer) -> bool:
        """Settle one message of a flow; False when the library does not take it."""
        result: int = self._settle(flow, message_id, answer)
        return result == _OK

    def set_bytes(self, pointer: Pointer, payload: bytes) -> None:
        """Give a message another payload, so that one can be sent many times."""
        if self._bytes(pointer, payload, len(payload)) != _OK:
            _check(-1, "payload")

    def set_text(self, pointer: Pointer, payload: str) -> None:
        """As `set_bytes`; a NUL would end the text."""
        _check(self._text(pointer, payload.encode()), "payload")

    def set_reply_to(self, pointer: Pointer, topic: str) -> None:
        destination = Destination(_TOPIC, topic.encode())
        result = self._reply_to(pointer, destination, ctypes.sizeof(destination))
        _check(result, "reply-to")

    def set_time(self, pointer: Pointer, milliseconds: int) -> None:
        _check(self._time(pointer, milliseconds), "sender time stamp")

    def set_correlation(self, pointer: Pointer, text: str) -> None:
        _check(self._correlation(pointer, text.encode()), "correlation id")

    def set_message_id(self, pointer: Pointer, text: str) -> None:
        _check(self._message_id(pointer, text.encode()), "message id")

    def set_mode(self, pointer: Pointer, mode: Mode) -> None:
        _check(self._mode(pointer, mode), "delivery mode")

    def set_topic(self, pointer: Pointer, topic: Destination) -> None:
        if self._topic(pointer, topic, ctypes.sizeof(Destination)) != _OK:
            _check(-1, "topic")

    def set_tag(self, pointer: Pointer, tag: bytes) -> None:
        """What its receipt brings back; `tag` itself must live until then."""
        if self._tag(pointer, tag, len(tag)) != _OK:
            _check(-1, "correlation tag")

    def last_error(self) -> str:
        """What went wrong last in this thread, with the library's word for it."""
        info = self._last_error().contents
        word, text = self._subcode(info.subcode), info.text.decode("utf-8", "replace")
        return f"{text} ({(word or b'').decode('ascii', 'replace')})"


def topic_of(name: str) -> Destination:
    """`name` must be what `find_fault` finds no fault with."""
    return Destination(_TOPIC, name.encode())


def pointer_of(message: Any) -> Pointer:  # noqa: ANN401  # the driver's message
    """What the setters want; it is valid as long as `message` lives."""
    pointer: Pointer = message.solace_message.msg_p
    return pointer


def _function(name: str, takes: tuple[Any, ...], gives: Any = _INT) -> Any:  # noqa: ANN401
    """A function object of our own, for the driver sets other types on its."""
    try:
        found = solace.CORE_LIB[f"solClient_{name}"]
    except AttributeError as error:
        raise EndpointError(
            f"solace: the installed solace-pubsubplus is not supported: {error};"
            " 1.9 to 1.11 are known to work"
        ) from error
    found.argtypes, found.restype = takes, gives
    return found


def _check(result: int, what: str) -> None:
    if result != _OK:
        raise EndpointError(f"solace: the library refuses the {what} of a message ({result})")
