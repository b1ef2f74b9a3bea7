"""Four calls into the vendor's C library that its Python classes do not offer; nothing else does.

Reading a whole message at once is faster than one call a field, and true: the Python classes cut
byte arrays in maps at their first NUL, and they show no reply-to. Writing sets what they cannot.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import solace

from gateway.errors import EndpointError

_OK: Final = 0
_TOPIC: Final = 0  # kind of a destination

Read = Callable[[Any], bytes]


class _Destination(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("name", ctypes.c_char_p))


class Native:
    """The C library, looked up once. Mutable: its cells are filled by one thread at a time."""

    def __init__(self) -> None:
        """Raises: EndpointError: the installed version lacks what is needed."""
        try:
            library = solace.CORE_LIB
            self._frame = library.solClient_msg_getSMFPtr
            self._bytes = library.solClient_msg_setBinaryAttachment
            self._text = library.solClient_msg_setBinaryAttachmentString
            self._reply_to = library.solClient_msg_setReplyTo
            self._time = library.solClient_msg_setSenderTimestamp
        except AttributeError as error:
            raise EndpointError(
                f"solace: the installed solace-pubsubplus is not supported: {error};"
                " 1.11 is known to work"
            ) from error
        self._start, self._size = ctypes.c_void_p(), ctypes.c_uint32()
        self._cells = ctypes.byref(self._start), ctypes.byref(self._size)

    def read(self, message: Any) -> bytes:  # noqa: ANN401  # the driver's message
        """The bytes of a received message, or none when the library does not have them."""
        if self._frame(message.solace_message.msg_p, *self._cells) != _OK:
            return b""
        return ctypes.string_at(self._start.value or 0, self._size.value)

    def pointer(self, message: Any) -> Any:  # noqa: ANN401  # of the C library
        """What `set_bytes` wants; it is valid as long as `message` lives."""
        return message.solace_message.msg_p

    def set_bytes(self, pointer: Any, payload: bytes) -> None:  # noqa: ANN401
        """Give a message another payload, so that one can be sent many times."""
        if self._bytes(pointer, payload, len(payload)) != _OK:
            _check(-1, "payload")

    def set_text(self, message: Any, payload: str) -> None:  # noqa: ANN401
        """As `set_bytes`; a NUL would end the text."""
        _check(self._text(message.solace_message.msg_p, payload.encode()), "payload")

    def set_reply_to(self, message: Any, topic: str) -> None:  # noqa: ANN401
        destination = _Destination(_TOPIC, topic.encode())
        size = ctypes.sizeof(destination)
        result = self._reply_to(message.solace_message.msg_p, ctypes.byref(destination), size)
        _check(result, "reply-to")

    def set_time(self, message: Any, milliseconds: int) -> None:  # noqa: ANN401
        value = ctypes.c_int64(milliseconds)
        _check(self._time(message.solace_message.msg_p, value), "sender time stamp")


def _check(result: int, what: str) -> None:
    if result != _OK:
        raise EndpointError(f"solace: the library refuses the {what} of a message ({result})")
