"""A durable subscription that a source left at its server: its end.

JMS has no question about what a subscription holds.
"""

from __future__ import annotations

from typing import Final

from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.connection import JmsConnection, connect
from gateway.endpoints.jms.jvm import JavaError, open_library
from gateway.endpoints.made import UNKNOWN, Held, Made
from gateway.endpoints.settings.jms import JmsSettings

_AUTO_ACKNOWLEDGE: Final = 1  # javax.jms.Session
_ABSENT: Final = "InvalidDestinationException"  # what a library raises for an unknown name


def count_held(settings: JmsSettings, made: Made) -> Held:
    """Ask nothing: JMS has no question about a durable subscription."""
    del settings, made
    return UNKNOWN


def end_made(settings: JmsSettings, made: Made) -> None:
    """End the subscription as the client that made it."""

    def unsubscribe(opened: JmsConnection) -> None:
        session = opened.connection.createSession(False, _AUTO_ACKNOWLEDGE)
        try:
            session.unsubscribe(jvm.text(made.name))
        except JavaError as error:
            if not type(error).__name__.endswith(_ABSENT):
                raise

    connection = connect(settings, open_library(settings), made.within)
    connection.set_up(unsubscribe)
    connection.close(settings.close_timeout)
