"""The JMS endpoint; `instance` becomes part of the client id of a source."""

from __future__ import annotations

from gateway.endpoints.jms.jvm import open_library
from gateway.endpoints.jms.made import count_held, end_made
from gateway.endpoints.jms.sink import JmsSink
from gateway.endpoints.jms.source import JmsSource
from gateway.endpoints.settings.jms import JmsSettings

__all__ = ["JmsSink", "JmsSource", "count_held", "end_made", "open_sink", "open_source"]

open_source, open_sink = JmsSource, JmsSink


def warm_up(settings: JmsSettings) -> None:
    """Start Java and load the client library.

    Raises:
        DriverMissingError: a jar, a class or Java itself is missing; the text gives the remedy.
    """
    open_library(settings)
