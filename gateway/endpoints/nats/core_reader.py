"""Subscriptions of core NATS, over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from gateway.endpoints.continuity import Continuity
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.nats.headers import HeaderBlockReader
from gateway.endpoints.nats.intake import Inbox
from gateway.endpoints.nats.subjects import selects
from gateway.endpoints.receipts import ReceivedMessage
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import Message
from gateway.untyped import Untyped


class CoreReader:
    """Reads subscriptions; of several patterns that select a message, the first takes it."""

    def __init__(
        self, settings: NatsSettings, patterns: Sequence[str], continuity: Continuity
    ) -> None:
        self._settings, self._patterns, self._continuity = settings, patterns, continuity
        self.queue: Inbox = Inbox(settings.receive_window_bytes)
        self._connection: NatsConnection | None = None
        self._headers = HeaderBlockReader()
        self._live: list[Any] = []  # the library's subscriptions

    async def start(self, connection: NatsConnection) -> None:
        for at, pattern in enumerate(self._patterns):
            subscription = await connection.client.subscribe(
                pattern,
                queue=self._settings.queue_group,
                cb=partial(self._take, self._patterns[:at]),
                pending_bytes_limit=0,  # the library would drop the rest uncounted
                pending_msgs_limit=0,
            )
            connection.client.limit(subscription, self._settings.max_message_in)
            self._live.append(subscription)
        await connection.client.flush(self._settings.answer_timeout)
        connection.refuse_denied()
        self._connection = connection

    def end(self) -> None:
        if self._connection is not None:
            self._connection.run(self._drain())

    async def _drain(self) -> None:
        """Take in what the server has sent before its answers, and nothing more."""
        await asyncio.gather(*(each.drain() for each in self._live))
        self.queue.end()

    async def _take(self, earlier: Sequence[str], message: Untyped) -> None:
        if any(selects(each, message.subject) for each in earlier):
            return
        if self.queue.full:
            self._continuity.report_loss("the gateway dropped messages of core NATS", 1)
            return
        own = {"mode": self._settings.mode, "reply_to": message.reply or None}
        found = Message(message.subject, message.data, *self._headers.read(message.headers, own))
        self._continuity.heard = self._continuity.clock()
        self.queue.put([ReceivedMessage(found, "")])
