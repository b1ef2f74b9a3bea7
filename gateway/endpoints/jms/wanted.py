"""Everything of a JMS source that outlives its connections.

consumers     from the configuration
memory        durable subscriptions, and how many messages an earlier process may have left
recent ids    of messages that a server may deliver again after a break, though acknowledged
library       loaded once: Java stays warm
"""

from __future__ import annotations

import logging
import sys
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Final

from gateway.endpoints import source_memory
from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.jms.addresses import QUEUE
from gateway.endpoints.jms.consumers import read_subscriptions
from gateway.endpoints.jms.jvm import JmsLibrary
from gateway.endpoints.jms.message_reader import BatchReader, DrainedBatch
from gateway.endpoints.made import Made
from gateway.endpoints.received_queue import mark_redelivered
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.source_memory import NO_TEXTS, SourceMemory, read_count, read_texts
from gateway.model.message import Message

log = logging.getLogger(__name__)

UNSETTLED: Final = "unsettled"  # a fact of the memory: messages that may have been received
COUNTER_NAMES: Final = (
    "unwanted",  # delivered by a server whose wildcards select more, and dropped
    "dropped_replies",  # temporary reply addresses
    "unreadable",  # bodies the library could not read
    "imported",  # from Rendezvous or SmartSockets through the server
    "seen_before",  # perhaps received before the last break, and marked as redelivered
    "discarded",  # by ActiveMQ, for a slow consumer of a topic
)


class WantedConsumers:
    """The consumers of a source. Mutable: owned by the receiving thread."""

    def __init__(
        self, settings: JmsSettings, subscriptions: Sequence[Subscription], instance: str
    ) -> None:
        self.settings = settings
        self.consumers = read_subscriptions(settings, subscriptions)
        self.client_id = settings.client_id
        if self.client_id and instance:
            self.client_id += f"-{instance}"
        self.memory = SourceMemory()
        self._keeps = all(each.kind == QUEUE or each.durable for each in self.consumers)
        self.continuity = Continuity(Retention.KEPT if self._keeps else Retention.NOTHING)
        self.counts = Counter(dict.fromkeys(COUNTER_NAMES, 0))
        self.reader = BatchReader(settings, [(each.kind, each.name) for each in self.consumers])
        self.library: JmsLibrary | None = None
        # With `client` a break can lose the last acknowledgement, and later messages come after it.
        # The drain in which these two windows begin counts whole.
        most = 2 * (settings.receive_window + settings.batch) + settings.batch
        self.recent_ids: deque[str | None] = deque(maxlen=min(most, sys.maxsize))
        self.largest = 0  # bytes of a message that ActiveMQ sent
        self._doubtful: int | None = None  # messages that an earlier process may have had
        window = settings.receive_window + settings.batch
        self._most = len(self.consumers) * window  # messages; the consumers take turns
        self._all_settled: bool | None = None  # as the memory has it; None: not looked at
        self._received_at = 0.0  # seconds of a monotonic clock

    def removes(self, address: str) -> bool:
        """Return whether a queue or a shared subscription had the message.

        A bridge may bring the messages of a topic into a queue, which keep the topic's name.
        """
        queues_only = all(each.kind == QUEUE for each in self.consumers)
        return queues_only or self.settings.removes(address)

    def fitting_settings(self) -> JmsSettings:
        """Return the settings with a prefetch whose bytes fit, where the bound ends a connection.

        In a transacted session the thread that reads must not wait: it also reads the answer to
        the commit. Other sessions let it wait (ReceiveWindow.java).
        """
        settings = self.settings
        fitting = max(1, settings.receive_window_bytes // max(1, self.largest))
        if settings.acknowledge != "transacted" or fitting >= (settings.prefetch or settings.batch):
            return settings
        return replace(settings, prefetch=fitting)

    def subscribing(self) -> None:
        """Note, before a connection makes them, the durable subscriptions of this source."""
        for each in self.consumers:
            if each.durable:
                key = self.settings.broker_key
                made = Made("durable subscription", each.durable, key, self.client_id)
                self.memory.note_made(made)

    def subscribed(self) -> None:
        """Note a connection with all consumers, which may leave a window of each unsettled."""
        self._find_remade()
        if self._doubtful is None:
            kept = self.memory.get(UNSETTLED, read_count, 0)
            self._doubtful = self._most if kept is None else kept
        self.receiving()

    def receiving(self) -> None:
        """Note, before messages are handed out, that a window of them may be unsettled."""
        self._received_at = monotonic()
        if self._keeps and self._all_settled is not False:
            self._all_settled = False
            self.memory.put(UNSETTLED, self._most)

    def fell_quiet(self) -> None:
        """Note that nothing came, and that all was acknowledged before."""
        silence = monotonic() - self._received_at
        if not self._all_settled and silence >= source_memory.WRITE_INTERVAL:
            self.all_settled()

    def note(self, drained: DrainedBatch, seen: frozenset[str | None]) -> list[Message]:
        """Count a drain; return its messages, marked if received before the last break.

        Those with an id in `seen` were, and the first ones may have been, by an earlier process.
        """
        counts, messages, doubtful = self.counts, drained.messages, self._doubtful or 0
        counts["unwanted"] += len(drained.unwanted)
        counts.update(drained.counts)
        if unreadable := drained.counts["unreadable"]:
            text = "%s: %d bodies could not be read; the property jms.error says why"
            log.warning(text, self.settings.name, unreadable)
        if seen or doubtful:
            self._doubtful = max(0, doubtful - len(messages))
            again = [at < doubtful or m.headers.source_id in seen for at, m in enumerate(messages)]
            counts["seen_before"] += sum(again)
            messages = [
                mark_redelivered(m) if old else m for m, old in zip(messages, again, strict=True)
            ]
        self.recent_ids.extend([message.headers.source_id for message in messages])
        return messages

    def all_settled(self) -> None:
        """Note that nothing is unsettled, but what an earlier process may have left."""
        self._all_settled = True
        self.memory.put(UNSETTLED, self._doubtful or 0)

    def _find_remade(self) -> None:
        """Find durable subscriptions that this connection has changed.

        A server then deletes the old one of that name, with its messages (JMS 2.0, 8.3.3).
        """
        memory, settings = self.memory, self.settings
        wanted = {each.durable: each.definition for each in self.consumers if each.durable}
        if not wanted:
            return
        fact = f"durable {self.client_id} {settings.broker_key}"
        saved = memory.get(fact, read_texts, NO_TEXTS) or NO_TEXTS
        known = {text.partition("\n")[0]: text for text in saved}
        changed = [name for name, text in wanted.items() if known.get(name, text) != text]
        for name in changed:
            log.warning(
                "%s: the durable subscription %s has another pattern or selector: the server has"
                " deleted the messages that it kept for the old one",
                settings.name,
                name,
            )
        if self._keeps:
            self.continuity.retention = Retention.NEW if changed else Retention.KEPT
        memory.put(fact, sorted({**known, **wanted}.values()))
