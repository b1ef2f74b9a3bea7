"""Message objects of the library's receivers, created without reading any field.

The library's own constructor reads two header fields inside a callback of its C library. A value
that it cannot read raises there: the message is never delivered, never settled and freed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from solace.messaging.config._sol_constants import SOLCLIENT_FLOW_PROP_WINDOWSIZE
from solace.messaging.core._core_api_utility import prepare_array
from solace.messaging.receiver._impl import _message_receiver, _persistent_message_receiver
from solace.messaging.receiver._impl._inbound_message import _InboundMessage

from gateway.endpoints.solace.native_library import unsupported_library
from gateway.untyped import Untyped

_RECEIVER_MODULES: Final = (_message_receiver, _persistent_message_receiver)
_CLASS_NAME: Final = "_InboundMessage"
_FLOW_PROPERTIES: Final = "_flow_arr"


class DiscardMark:
    """Whether the library dropped messages before this one.

    Mutable: set by the library's thread.
    """

    __slots__ = ("_is_set",)

    def __init__(self) -> None:
        self._is_set = False

    def set_internal_discard_indication(self) -> None:
        self._is_set = True

    def has_internal_discard_indication(self) -> bool:
        return self._is_set


class EndOfIntake(DiscardMark):
    """Stands in a receiver's queue behind the last message that is taken in; `end` tells of it."""

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__()
        self.end = end
        self._solace_message = self  # a receiver frees what its queue still has when it ends

    def get_message_discard_notification(self) -> DiscardMark:
        return self

    def cleanup(self) -> None:
        """Free nothing."""


class ReceivedObject(_InboundMessage):  # type: ignore[misc]  # the driver has no types
    """A received message of which only the C library's message and the discard mark are used."""

    def __init__(self, solace_message: Untyped) -> None:
        self._solace_message = solace_message
        self._discard_mark = DiscardMark()

    def get_message_discard_notification(self) -> DiscardMark:
        return self._discard_mark


def install() -> None:
    """Let the library's receivers create `ReceivedObject`.

    Raises:
        EndpointError: the installed version creates its messages in another way.
    """
    for module in _RECEIVER_MODULES:
        if not hasattr(module, _CLASS_NAME):
            raise unsupported_library(f"{module.__name__} has no {_CLASS_NAME}")
        setattr(module, _CLASS_NAME, ReceivedObject)


def set_receive_window(receiver: Untyped, messages: int) -> None:
    """Let the broker send at most `messages` beyond those that the library has acknowledged.

    The library's builder has no such property; the receiver is not started.

    Raises:
        EndpointError: the installed version keeps its properties in another way.
    """
    if not hasattr(receiver, _FLOW_PROPERTIES):
        raise unsupported_library(f"its receiver has no {_FLOW_PROPERTIES}")
    config = {**vars(receiver)["_config"], SOLCLIENT_FLOW_PROP_WINDOWSIZE: str(messages)}
    setattr(receiver, _FLOW_PROPERTIES, prepare_array(config))
