"""A queue that a source left at its broker: its end.

The messages of a queue are counted by SEMP, which the vendor's client does not speak.
"""

from __future__ import annotations

from gateway.endpoints.made import UNKNOWN, Held, Made
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.connection import SolaceConnection
from gateway.endpoints.solace.native_library import NativeLibrary
from gateway.errors import EndpointError


def count_held(settings: SolaceSettings, made: Made) -> Held:
    """Ask nothing: the protocol has no question about what a queue holds."""
    del settings, made
    return UNKNOWN


def end_made(settings: SolaceSettings, made: Made) -> None:
    """Delete the queue with its subscriptions."""
    native = NativeLibrary()
    connection = SolaceConnection(settings, "withdraw", lambda _failure: None)
    try:
        session = connection.service.session.session_pointer
        if not native.delete_queue(session, made.name):
            reason = native.last_error()
            raise EndpointError(f"{settings.name}: queue {made.name!r} stays: {reason}")
    finally:
        connection.close()
