"""Sends for a command beside the gateway: messages to endpoints at once, rows to the archive."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.archive.journal.records import Rows
from gateway.archive.journal.writer import ArchiveWriter
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.dialects.base import Dialect
from gateway.endpoints.base import Sink
from gateway.endpoints.registry import make_sink
from gateway.errors import ArchiveError, GatewayError
from gateway.model.message import Message
from gateway.model.outcome import RETRY, Outcome, Settlement
from gateway.routing.payload import convert
from gateway.routing.router import Hop
from gateway.runtime.inbound.header_mapping import Adapter
from gateway.runtime.monitor.counters import RouteCounters
from gateway.runtime.wiring import options_of, place_of

TOGETHER: Final = 200  # messages in one send
PATIENCE: Final = 60.0  # seconds for the answers to one send


class Outbox:
    """Mutable: it has sinks and an archive open until it is closed.

    `purpose` tells its connections from the gateway's own.
    """

    def __init__(self, configuration: Configuration, purpose: str) -> None:
        self._configuration = configuration
        self._purpose = purpose
        self._adapters: dict[str, Adapter] = {}
        self._sinks: dict[str, Sink] = {}
        self._writer: ArchiveWriter | None = None

    def make(self, message: Message, hop: Hop, dialect: Dialect) -> Message:
        """What the target of `hop` gets of a message whose source speaks `dialect`.

        Raises:
            TranslationError: the hop refuses it, or a rule of the target does.
        """
        target, route = hop.target, hop.route
        if target is None or route is None:
            return message
        if dialect.name not in self._adapters:
            counters = {each.name: RouteCounters() for each in self._configuration.routes}
            name = self._configuration.gateway.name
            self._adapters[dialect.name] = Adapter(name, dialect, counters)
        carries = self._configuration.endpoints[target.endpoint].settings.carries
        headers = self._adapters[dialect.name].adapt(message.headers, hop, carries)
        payload = message.payload
        if target.conversion is not None:
            payload = convert(payload, target.conversion)
        return replace(message, address=hop.address, payload=payload, headers=headers)

    def send(self, endpoint: str, messages: Sequence[Message]) -> Sequence[Settlement]:
        """What `endpoint` answers; RETRY with a reason where it does not."""
        if not messages:
            return []
        answered = threading.Event()
        answers: list[Settlement] = []

        def settled(settlements: Sequence[Settlement]) -> None:
            answers.extend(settlements)
            answered.set()

        try:
            self._sink(endpoint).send(messages, settled)
        except GatewayError as error:
            return [Settlement(Outcome.RETRY, reason=str(error))] * len(messages)
        answered.wait(PATIENCE)
        return answers or [RETRY] * len(messages)

    def record(self, rows: Sequence[Rows]) -> None:
        """Archive the rows, where there is an archive; they are durable when this returns.

        Raises:
            ArchiveError: it cannot be written.
        """
        archive = self._configuration.archive
        if not rows or archive is None:
            return
        if self._writer is None:
            name = self._configuration.gateway.name
            self._writer = ArchiveWriter(place_of(archive), name, now(), options_of(archive))
        durable = threading.Event()
        self._writer.append(rows, durable.set)
        if not durable.wait(PATIENCE):
            text = f"{self._purpose}: the archive does not answer"
            raise self._writer.failure or ArchiveError(text)

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()
        if self._writer is not None:
            self._writer.close()

    def _sink(self, endpoint: str) -> Sink:
        if endpoint not in self._sinks:
            settings = self._configuration.endpoints[endpoint].settings
            sink = make_sink(settings, instance=self._purpose)
            sink.open()
            self._sinks[endpoint] = sink
        return self._sinks[endpoint]
