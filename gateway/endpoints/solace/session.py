"""One connection of a sink: it sends, matches receipts to messages and ends once.

Messages go straight to the C library: the Python publishers copy each of them into an object that
only the cyclic collector frees and pass each receipt through two threads, which takes nine tenths
of the time. The library's thread only notes what a receipt says; a thread of ours answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Final

from gateway.clock import now
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.link import Link
from gateway.endpoints.solace.native import Destination, Native, Pointer, Sent
from gateway.endpoints.solace.outbound import Writer
from gateway.endpoints.solace.pending import PUBLISHER, Delivery, Receipts
from gateway.endpoints.solace.refusals import local_refusal, publish_refusal
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.outcome import ACCEPTED, RETRY, Settlement

log = logging.getLogger(__name__)

_GLANCE: Final = 0.05  # seconds between looks at a library that never says it has room
_WATCH: Final = 0.25  # seconds between looks at outstanding receipts, at most


class Session:
    """Mutable: it ends once, with an answer for everything."""

    def __init__(self, settings: SolaceSettings, native: Native) -> None:
        """Connect.

        Raises:
            NotConnectedError: nobody answers there now.
            EndpointError: refused for good, or the settings cannot work.
        """
        self._settings, self._native = settings, native
        self._receipts = Receipts()
        self._failure: GatewayError | None = None
        self._wire = Lock()  # held while the library sends, so that nobody closes it meanwhile
        self._complete: SimpleQueue[Delivery | None] = SimpleQueue()
        self._room = Event()
        self._link = Link(settings, "sink", self._end)
        driver = self._link.service.session
        self._pointer: Pointer = driver.session_pointer
        self._room = driver.can_send_received  # the library sets it when there is room again
        # It stays registered for good: that keeps the tags alive as long as the library knows them.
        driver.register_acknowledgement_handler(self._receipt, PUBLISHER)
        self.writer = Writer(
            self._link.service.message_builder(),
            native,
            now,
            partition_level=settings.partition_level,
            guaranteed=settings.guaranteed,
        )
        self._thread = Thread(target=self._answer, name=f"{settings.name}-receipts", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return self._failure is not None

    def publish_guaranteed(
        self, message: Pointer, topic: Destination, delivery: Delivery, place: int
    ) -> Settlement | None:
        """Publish; `delivery` hears of it from the receipt.

        Returns:
            What ends the message when the library refuses it, and there will be no receipt.

        Raises:
            NotConnectedError: it may not have left.
        """
        tag = self._receipts.expect(delivery, place)
        try:
            self._native.set_tag(message, tag)
            refusal = self._publish(message, topic)
        except GatewayError:
            self._receipts.arrived(tag)
            raise
        if refusal is not None:
            self._receipts.arrived(tag)
        return refusal

    def publish_direct(self, message: Pointer, topic: Destination) -> Settlement:
        """Publish, which settles the message.

        Raises:
            NotConnectedError: the connection is away; nothing keeps a direct message.
        """
        if self._link.away:
            raise NotConnectedError(f"{self._settings.name}: the connection is away")
        return self._publish(message, topic) or ACCEPTED

    def close(self) -> None:
        self._end(NotConnectedError(f"{self._settings.name}: is closed; open it first"))
        self._complete.put(None)
        with self._wire:
            self._link.close()
        if self._thread is not current_thread():  # an answer may be what closes us
            self._thread.join()

    def _publish(self, message: Pointer, topic: Destination) -> Settlement | None:
        """Publish as soon as there is room, and no later than the answers may take."""
        self._native.set_topic(message, topic)
        sent = self._send(message)
        if sent == Sent.WOULD_BLOCK:
            sent = self._send_patiently(message)
        if sent == Sent.OK:
            return None
        said = self._native.last_error()
        refusal = local_refusal(said)
        if refusal is None:
            raise NotConnectedError(f"{self._settings.name}: cannot publish: {said}")
        return refusal

    def _send(self, message: Pointer) -> int:
        with self._wire:
            if self._failure is not None:
                raise NotConnectedError(str(self._failure))
            return self._native.send(self._pointer, message)

    def _send_patiently(self, message: Pointer) -> int:
        deadline = time.monotonic() + self._settings.answer_timeout
        sent: int = Sent.WOULD_BLOCK
        while sent == Sent.WOULD_BLOCK:
            if time.monotonic() >= deadline:
                self._end(self._stuck())
            self._room.wait(_GLANCE)
            self._room.clear()  # before the next attempt, so that no call is missed
            sent = self._send(message)
        return sent

    def _receipt(self, tag: bytes, event: object, error: Exception | None = None) -> None:
        """Called by the library's thread, which swallows what this raises."""
        del event
        found = self._receipts.arrived(tag)
        if found is not None:
            delivery, place = found
            settlement = ACCEPTED if error is None else publish_refusal(error)
            if delivery.settle((place,), settlement):
                self._complete.put(delivery)

    def _answer(self) -> None:
        """Pass answers on, and declare a broker stuck that gives none."""
        patience = self._settings.answer_timeout
        while True:
            try:
                delivery = self._complete.get(timeout=min(_WATCH, patience))
                if delivery is None:
                    return
                self._guard(delivery.answer)
            except Empty:
                pass
            if self._receipts.silent_for() > patience:
                self._guard(lambda: self._end(self._stuck()))

    def _guard(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # one batch's trouble is not that of the next
            log.exception("%s: an answer could not be passed on", self._settings.name)

    def _stuck(self) -> NotConnectedError:
        patience = self._settings.answer_timeout
        return NotConnectedError(f"{self._settings.name}: no receipt for {patience} s")

    def _end(self, failure: GatewayError) -> None:
        """Nothing goes out any more; all that has no answer is to be tried again."""
        if self._failure is None:
            self._failure = failure
        self._room.set()
        for delivery in self._receipts.deliveries():
            delivery.settle_rest(RETRY)
