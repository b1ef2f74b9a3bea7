"""The receiving side of MQTT: one connection with all subscriptions of a source."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from time import monotonic

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.mqtt.addresses import Addresses
from gateway.endpoints.mqtt.client_id import ClosedConnections, client_id
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.count_request import CountRequest
from gateway.endpoints.mqtt.kept_session import kept_session
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.mqtt.subscription_state import RequestedSubscription
from gateway.endpoints.mqtt.witness import Witness
from gateway.endpoints.redelivery_queue import MAX_BATCH
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.source_memory import NO_TEXTS, SourceMemory, read_texts
from gateway.errors import ClientIdDisputeError, GatewayError, NotConnectedError
from gateway.wire.mqtt.topic_filters import SHARED, any_selects, inner_filter

log = logging.getLogger(__name__)

# Subscription options (MQTT 5.0, 3.8.3.1)
NO_LOCAL, RETAIN_AS_PUBLISHED = 0x04, 0x08
SEND_RETAINED_IF_NEW, SEND_NO_RETAINED = 0x10, 0x20


class MqttSource:
    """Receives the messages of its subscriptions.

    Mutable: owned by the receiving thread; any thread may close it.
    """

    def __init__(
        self, settings: MqttSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        self._settings, self._subscriptions = settings, tuple(subscriptions)
        self._client_id = client_id(settings, instance)
        self._filters = [each.pattern for each in subscriptions]
        self._shares = [*filter(settings.removes, self._filters)]
        counts = settings.dropped_topic
        if any_selects(map(inner_filter, self._filters), counts):
            counts = ""  # a route selects the counts: they come once
        self._count_request = CountRequest(settings.name, counts)
        if counts:
            self._filters.append(counts)
        self.addresses = Addresses(settings, self._client_id)
        self._use_session(settings.each_address[0])
        self.memory = SourceMemory()
        self._session_is_new = False  # made since the last successful `open`
        self._closed = ClosedConnections()
        self._witness: Witness | None = None  # while the id seems disputed
        self._state: ReceiveState | None = None
        keeps = settings.session_expiry > 0 and settings.qos > 0
        self._continuity = Continuity(Retention.KEPT if keeps else Retention.NOTHING)

    @property
    def address(self) -> str:
        """HOST:PORT of the broker."""
        return self.addresses.tried

    def open(self) -> None:
        if self._state is not None and self._state.connection.failure is None:
            return
        self.close()
        self.addresses.connect(partial(self._count_request.attempt, self._connect))
        if self._state is not None:
            self._continuity.retention = self._retention(self._state.connection)
        self._session_is_new = False

    def _use_session(self, settings: MqttSettings) -> None:
        """Take the session at the one address of `settings`; a cluster has one for all."""
        key = (self._settings if settings.cluster else settings).broker_key
        self._kept = kept_session(key, self._client_id)
        several = key != self._settings.broker_key
        self._fact = f"filters {self._client_id}" + (f" {key}" if several else "")

    def _connect(self, settings: MqttSettings) -> None:
        """Open the source at the one address of `settings`."""
        self._use_session(settings)
        if settings.address != self.addresses.in_use:
            self._continuity.dropped = None  # each broker, and each node, counts its own
        state = ReceiveState(settings, self._subscriptions, self._kept)
        state.count_dropped = self._continuity.count_dropped
        self._continuity.begin_counting()
        clean = settings.session_expiry == 0
        self._kept.filters.update(self.memory.get(self._fact, read_texts, NO_TEXTS) or ())
        self._dismiss_witness()  # of an attempt that failed
        if self._closed.suspicious:
            self._witness = Witness.opened(settings, self._client_id)
        state.connection = MqttConnection(
            settings, self._client_id, clean=clean, owner=state, closed=self._closed
        )
        try:
            unwanted = partial(self._kept.unwanted, self._filters)  # after a reload or a restart
            state.connection.open(self._wanted, unwanted, self._count_request.topic)
        except GatewayError as error:
            state.connection_failed()
            self._note_end(state.connection)
            if isinstance(error, ClientIdDisputeError) and not self._count_request.ended_last:
                raise self._judged(error) from error
            raise
        self._state = state
        self._count_request.connected()

    def receive(self, timeout: float) -> Batch | None:
        if self._witness is not None and not self._closed.is_short:
            self._dismiss_witness()
        state = self._state
        if state is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        queue, connection = state.queue, state.connection
        if self.addresses.first_answers and connection.failure is None:
            self._return(state)
        deadline = monotonic() + timeout
        try:
            while (batch := queue.take_batch(MAX_BATCH, 0.0)) is None and (
                left := deadline - monotonic()
            ) > 0:
                if not connection.lead(left):
                    return queue.take_batch(MAX_BATCH, left)
        except ClientIdDisputeError as error:
            raise self._judged(error) from error
        return batch

    def _return(self, state: ReceiveState) -> None:
        """Leave for the first address when nothing is unsettled; read nothing until then."""
        state.leaves = True
        if not state.queue.held:
            state.connection.close(self.addresses.return_to_first())
        elif not self.addresses.leave_in_time():
            state.leaves = False
            state.connection.resume_reading()

    @property
    def continuity(self) -> Continuity:
        """The state for the runtime; a ping a few times a minute is a sign of the broker."""
        state = self._state
        if state is not None:
            silence = int(state.connection.silence * 1_000_000)
            self._continuity.heard = self._continuity.clock() - silence
        if self._kept.has_qos_0:
            self._continuity.retention = Retention.NOTHING
        return self._continuity

    def removes(self, address: str) -> bool:
        """Return whether a shared subscription selects the topic.

        A message does not tell which subscription it came by.
        """
        return any_selects(map(inner_filter, self._shares), address)

    def end_intake(self) -> None:
        state = self._state
        if state is not None:
            state.end_after(state.connection.ping())

    @property
    def intake_ended(self) -> bool:
        state = self._state
        return state is None or state.queue.ended

    def close(self) -> None:
        self.addresses.close()
        state, self._state = self._state, None
        self._dismiss_witness()
        if state is not None:
            self._note_end(state.connection)
            state.connection.close()
            self._kept.filters -= state.connection.session.subscriptions.unsubscribed
            self._remember()

    def _remember(self) -> None:
        lasting = self._kept.filters if self._settings.session_expiry else ()
        self.memory.put(self._fact, sorted(lasting))

    def _note_end(self, connection: MqttConnection) -> None:
        """Note whether the connection ended at the request for the count."""
        self._count_request.ended(
            connection.session.subscriptions, lost=connection.failure is not None
        )
        if self._count_request.ended_last:
            self._closed.ended_otherwise()

    def _judged(self, error: ClientIdDisputeError) -> ClientIdDisputeError:
        """Return the error with what the witness saw."""
        if self._witness is None:
            return error
        proven = self._witness.outlives()
        self._dismiss_witness()
        seen = "stayed open" if proven else "ended, too: it was the network or the broker"
        return ClientIdDisputeError(f"{error}; another connection to it {seen}", proven=proven)

    def _dismiss_witness(self) -> None:
        if self._witness is not None:
            self._witness.close()
            self._witness = None

    def _retention(self, connection: MqttConnection) -> Retention:
        """Return what the broker did with the messages before this connection.

        A broker need not keep messages of QoS 0 (MQTT 5.0, 4.1).
        """
        settings, session = self._settings, connection.session
        at_most_once = self._kept.has_qos_0 or not min(settings.qos, session.subscriptions.granted)
        if at_most_once or not settings.session_expiry:
            return Retention.NOTHING
        same = settings.cluster or not self.addresses.moved
        is_new = self._session_is_new or not session.present
        return Retention.KEPT if same and not is_new else Retention.NEW

    def _wanted(self, session_present: bool) -> Sequence[RequestedSubscription]:
        """Return the subscriptions: all of them, as a kept session may lack some."""
        settings = self._settings
        self._session_is_new |= not session_present
        if self._kept.filters and settings.session_expiry and not session_present:
            log.warning(
                "%s: the broker no longer has our session; messages sent meanwhile are lost",
                settings.name,
            )
        self._kept.subscribe(self._filters, present=session_present)
        self._remember()  # before the broker has them: an end of the process loses none
        return [(s.pattern, subscription_options(settings, s)) for s in self._subscriptions]


def subscription_options(settings: MqttSettings, subscription: Subscription) -> int:
    """Return the options byte of a topic filter in a SUBSCRIBE; in 3.1.1 it is just the QoS."""
    options = settings.qos
    if settings.version == "5":
        options |= 0 if subscription.marks_retained else RETAIN_AS_PUBLISHED
        options |= SEND_NO_RETAINED if subscription.exclude_retained else SEND_RETAINED_IF_NEW
        # MQTT 5.0, 3.8.3.1: No Local is a protocol error with a shared subscription
        if settings.no_local and not subscription.pattern.startswith(SHARED):
            options |= NO_LOCAL
    return options
