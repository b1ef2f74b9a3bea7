"""The C library below the vendor's Python classes, called directly for each message.

Reading a whole message is faster than one call for each field, and it is complete: the Python
classes truncate byte arrays in maps at their first NUL and do not give the reply-to. They also
copy every sent message into an object that only the cyclic collector frees, and pass every receipt
through two more threads. Received messages are freed here at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from typing import Final, TypeAlias

import solace

from gateway.errors import EndpointError
from gateway.model.outcome import Outcome
from gateway.untyped import Untyped

_OK: Final = 0
_TOPIC: Final = 0  # type of a destination
_DIRECT, _PERSISTENT = 0x00, 0x10  # delivery modes
_WAIT: Final = 1  # a request: until the broker answers
_IGNORE_ABSENT: Final = 2  # a deletion: of what is not there
_CONNECTION_ATTEMPTS: Final = 20  # a statistic
_GROUP_ID_SIZE: Final = 16  # bytes
# a broker would put a rejected message into its dead message queue, beside the dead letters
_ANSWERS: Final = {Outcome.ACCEPTED: 0, Outcome.REJECTED: 0, Outcome.RETRY: 2}

Pointer: TypeAlias = ctypes.c_void_p


class SendResult(IntEnum):
    """Results of sending; any other number is a failure."""

    OK = 0
    WOULD_BLOCK = 1


class NativeTopic(ctypes.Structure):
    """A topic of the C library; one object serves many messages."""

    _fields_ = (("kind", ctypes.c_int), ("name", ctypes.c_char_p))


class _ErrorInfo(ctypes.Structure):
    _fields_ = (("subcode", ctypes.c_int), ("code", ctypes.c_int), ("text", ctypes.c_char * 256))


_U32, _INT, _BYTES = ctypes.c_uint32, ctypes.c_int, ctypes.c_char_p


class NativeLibrary:
    """Functions of the C library.

    Mutable: owned by one thread at a time; calls share result cells.
    """

    def __init__(self) -> None:
        """Look up the functions.

        Raises:
            EndpointError: the installed version lacks one.
        """
        topic, text, number = ctypes.POINTER(NativeTopic), _BYTES, _U32
        size, texts = ctypes.c_size_t, ctypes.POINTER(_BYTES)
        self._frame = _function(
            "msg_getSMFPtr", Pointer, ctypes.POINTER(Pointer), ctypes.POINTER(number)
        )
        self._id = _function("msg_getMsgId", Pointer, ctypes.POINTER(ctypes.c_uint64))
        self._group_id = _function("msg_getReplicationGroupMessageId", Pointer, Pointer, size)
        self._bytes = _function("msg_setBinaryAttachment", Pointer, text, number)
        self._text = _function("msg_setBinaryAttachmentString", Pointer, text)
        self._reply_to = _function("msg_setReplyTo", Pointer, topic, size)
        self._topic = _function("msg_setDestination", Pointer, topic, size)
        self._as_reply = _function("msg_setAsReplyMsg", Pointer, ctypes.c_ubyte)
        self._time = _function("msg_setSenderTimestamp", Pointer, ctypes.c_int64)
        self._mode = _function("msg_setDeliveryMode", Pointer, number)
        self._correlation = _function("msg_setCorrelationId", Pointer, text)
        self._message_id = _function("msg_setApplicationMessageId", Pointer, text)
        self._map = _function("msg_getUserPropertyMap", Pointer, ctypes.POINTER(Pointer))
        self._new_map = _function(
            "msg_createUserPropertyMap", Pointer, ctypes.POINTER(Pointer), number
        )
        self._remove = _function("container_deleteField", Pointer, text)
        self._add_text = _function("container_addString", Pointer, text, text)
        self._tag = _function("msg_setCorrelationTagPtr", Pointer, text, number)
        self._settle = _function("flow_settleMsg", Pointer, ctypes.c_uint64, _INT)
        self._provision = _function(
            "session_endpointProvision", texts, Pointer, _INT, text, text, size
        )
        self._deprovision = _function("session_endpointDeprovision", texts, Pointer, _INT, Pointer)
        self._modify = _function("session_modifyClientInfo", Pointer, texts, _INT, text)
        self._statistic = _function(
            "session_getTxStat", Pointer, _INT, ctypes.POINTER(ctypes.c_uint64)
        )
        self.send: Callable[[Pointer, Pointer], int] = _function(
            "session_sendMsg", Pointer, Pointer
        )
        self._last_error = _function("getLastErrorInfo", result=ctypes.POINTER(_ErrorInfo))
        self._subcode = _function("subCodeToString", _INT, result=_BYTES)
        self._start, self._size, self._number = Pointer(), _U32(), ctypes.c_uint64()
        self._cells = ctypes.byref(self._start), ctypes.byref(self._size)
        self._number_cell = ctypes.byref(self._number)
        self._properties = Pointer()
        self._properties_cell = ctypes.byref(self._properties)
        self._group_cell = ctypes.create_string_buffer(_GROUP_ID_SIZE)

    def read(self, message: Untyped) -> bytes:
        """Return the bytes of a received message; b"" if the library does not have them."""
        if self._frame(message.solace_message.msg_p, *self._cells) != _OK:
            return b""
        return ctypes.string_at(self._start.value or 0, self._size.value)

    def read_id(self, message: Untyped) -> int:
        """Return the id by which a received message is settled; 0 for a direct message."""
        if self._id(message.solace_message.msg_p, self._number_cell) != _OK:
            return 0
        return self._number.value

    def read_group_id(self, message: Untyped) -> bytes:
        """Return the id of the broker's spool and of the message there; b"" from a direct message.

        An old broker does not say the former: then it is also b"".
        """
        pointer = message.solace_message.msg_p
        known = self._group_id(pointer, self._group_cell, _GROUP_ID_SIZE) == _OK
        return self._group_cell.raw if known else b""

    def release(self, message: Untyped) -> None:
        """Free a message of the driver, which must not be used afterwards.

        The driver stores its methods in it, a reference cycle that only a collection would free.
        """
        inner = message.solace_message
        inner.cleanup()
        vars(inner).clear()

    def settle(self, flow: Pointer, message_id: int, outcome: Outcome) -> bool:
        """Settle one message of a flow; return whether the library accepted the call."""
        result: int = self._settle(flow, message_id, _ANSWERS[outcome])
        return result == _OK

    def create_queue(self, session: Pointer, name: str, *, exclusive: bool) -> bool:
        """Create a durable queue; return False when it exists, and when the broker refuses it.

        The library's own receivers create a queue too, and do not tell whether they did.
        """
        properties = _queue_properties(name, ENDPOINT_ACCESSTYPE=str(int(exclusive)))
        result: int = self._provision(properties, session, _WAIT, None, None, 0)
        return result == _OK

    def delete_queue(self, session: Pointer, name: str) -> bool:
        """Delete a durable queue with its messages; return False when the broker refuses."""
        flags = _WAIT | _IGNORE_ABSENT
        result: int = self._deprovision(_queue_properties(name), session, flags, None)
        return result == _OK

    def ask(self, session: Pointer) -> bool:
        """Ask the broker and wait; return whether it answers within ten seconds.

        The request states the description of the client again, which changes nothing. A refusal is
        an answer. Any thread may call this, and none may destroy the session meanwhile.
        """
        pair = (b"SESSION_APPLICATION_DESCRIPTION", b"gateway", None)
        if self._modify(session, (_BYTES * len(pair))(*pair), _WAIT, None) == _OK:
            return True
        return bool(self._last_error().contents.code)

    def connections(self, session: Pointer) -> int:
        """Return how often the library has tried to connect; it does so again by itself.

        Any thread may call this.
        """
        number = ctypes.c_uint64()
        self._statistic(session, _CONNECTION_ATTEMPTS, ctypes.byref(number))
        return number.value

    def set_bytes(self, pointer: Pointer, payload: bytes) -> None:
        """Replace the payload, so that one message can be sent many times."""
        if self._bytes(pointer, payload, len(payload)) != _OK:
            _check(-1, "payload")

    def set_text(self, pointer: Pointer, payload: str) -> None:
        """Replace the payload by a text without NUL."""
        _check(self._text(pointer, payload.encode()), "payload")

    def set_reply_to(self, pointer: Pointer, topic: str) -> None:
        result = self._reply_to(pointer, native_topic(topic), ctypes.sizeof(NativeTopic))
        _check(result, "reply-to")

    def set_sender_time(self, pointer: Pointer, milliseconds: int) -> None:
        _check(self._time(pointer, milliseconds), "sender time stamp")

    def set_correlation_id(self, pointer: Pointer, text: str) -> None:
        _check(self._correlation(pointer, text.encode()), "correlation id")

    def set_message_id(self, pointer: Pointer, text: str) -> None:
        _check(self._message_id(pointer, text.encode()), "message id")

    def set_property(self, pointer: Pointer, name: bytes, text: str) -> None:
        """Replace a user property, or remove it if `text` is empty."""
        if self._map(pointer, self._properties_cell) != _OK:  # it has no properties
            if not text:
                return
            _check(self._new_map(pointer, self._properties_cell, 0), "properties")
        self._remove(self._properties, name)
        if text and self._add_text(self._properties, text.encode(), name) != _OK:
            _check(-1, "properties")

    def set_delivery_mode(self, pointer: Pointer, *, guaranteed: bool) -> None:
        _check(self._mode(pointer, _PERSISTENT if guaranteed else _DIRECT), "delivery mode")

    def set_topic(self, pointer: Pointer, topic: NativeTopic) -> None:
        if self._topic(pointer, topic, ctypes.sizeof(NativeTopic)) != _OK:
            _check(-1, "topic")

    def mark_reply(self, pointer: Pointer, *, is_reply: bool) -> None:
        _check(self._as_reply(pointer, is_reply), "mark as a reply")

    def set_correlation_tag(self, pointer: Pointer, tag: bytes) -> None:
        """Set the tag that the receipt returns; the caller keeps `tag` alive until then."""
        if self._tag(pointer, tag, len(tag)) != _OK:
            _check(-1, "correlation tag")

    def last_error(self) -> str:
        """Return the text and the subcode of the last error in this thread."""
        info = self._last_error().contents
        subcode, text = self._subcode(info.subcode), info.text.decode("utf-8", "replace")
        return f"{text} ({(subcode or b'').decode('ascii', 'replace')})"


def _queue_properties(name: str, **more: str) -> Untyped:
    """Return the properties of a durable queue: keys and values in turn, and an end."""
    facts = {"ENDPOINT_ID": "2", "ENDPOINT_NAME": name, "ENDPOINT_DURABLE": "1", **more}
    texts = [text.encode() for pair in facts.items() for text in pair]
    return (_BYTES * (len(texts) + 1))(*texts, None)


def native_topic(name: str) -> NativeTopic:
    """Return a topic; `find_topic_error` must have accepted `name`."""
    return NativeTopic(_TOPIC, name.encode())


def message_pointer(message: Untyped) -> Pointer:
    """Return the handle for the setters; it is valid as long as `message` lives."""
    pointer: Pointer = message.solace_message.msg_p
    return pointer


def unsupported_library(reason: str) -> EndpointError:
    text = f"the installed solace-pubsubplus is not supported: {reason}"
    return EndpointError(f"solace: {text}; 1.9 to 1.11 are known to work")


def _function(name: str, *arguments: Untyped, result: Untyped = _INT) -> Untyped:
    """Return a separate function object: the driver sets other types on its own."""
    try:
        found = solace.CORE_LIB[f"solClient_{name}"]
    except AttributeError as error:
        raise unsupported_library(str(error)) from error
    found.argtypes, found.restype = arguments, result
    return found


def _check(result: int, what: str) -> None:
    if result != _OK:
        raise EndpointError(f"solace: the library refuses the {what} of a message ({result})")
