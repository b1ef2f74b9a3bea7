"""One connection of an MQTT source, to one of its addresses, with all subscriptions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Final

from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Retention
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.mqtt.subscription_state import RequestedSubscription
from gateway.endpoints.mqtt.wanted import WantedSession
from gateway.endpoints.mqtt.witness import Witness
from gateway.endpoints.received_queue import MAX_BATCH
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.source_shell import not_open
from gateway.errors import ClientIdDisputeError, GatewayError

log = logging.getLogger(__name__)

CHANGED: Final = (
    "the options of the subscription to {} changed: it was removed and made again, and a message"
    " in between is lost"
)


class MqttIntake:
    """An intake (`endpoints.source_shell`) at the one address of `settings`.

    Mutable: owned by the receiving thread; any thread may close it.
    """

    def __init__(self, wanted: WantedSession, settings: MqttSettings) -> None:
        self._wanted, self._settings = wanted, settings
        self._kept, self._fact = wanted.kept_at(settings)
        state = self._state = ReceiveState(settings, wanted.subscriptions, self._kept)
        state.count_dropped = wanted.continuity.count_dropped
        self._connection = state.connection = MqttConnection(
            settings,
            wanted.client_id,
            clean=settings.session_expiry == 0,
            owner=state,
            closed=wanted.closed,
        )
        self.address, self.queue = settings.address, state.queue
        self._witness: Witness | None = None  # while the id seems disputed
        self._is_closed = False

    @property
    def ended(self) -> bool:
        return self.queue.ended

    def open(self) -> None:
        """Connect and subscribe. Raises as `Source.open` does."""
        wanted, asked = self._wanted, self._wanted.count_request
        if self.address != wanted.addresses.in_use:
            wanted.continuity.dropped = None  # each broker, and each node, counts its own
        wanted.continuity.begin_counting()
        began = wanted.continuity.clock()
        if wanted.closed.suspicious:
            self._witness = Witness.opened(self._settings, wanted.client_id)
        unwanted = partial(self._kept.unwanted, wanted.filters)  # after a reload or a restart
        try:
            self._connection.open(
                self._subscriptions, lambda: self._kept.changed, unwanted, asked.topic
            )
        except GatewayError as error:
            self._state.connection_failed()
            self._note_end()
            if isinstance(error, ClientIdDisputeError) and not asked.ended_last:
                raise self._judged(error) from error
            self._dismiss_witness()
            raise
        asked.connected()
        if changed := self._kept.changed:
            shown = ", ".join(map(repr, changed))
            wanted.continuity.report_loss(CHANGED.format(shown), since=began)
        self._confirm()

    def receive(self, timeout: float) -> Batch | None:
        wanted, connection = self._wanted, self._connection
        if self._witness is not None and not wanted.closed.is_short:
            self._dismiss_witness()
        if wanted.addresses.first_answers and connection.failure is None:
            self._return()
        try:
            return self._take(timeout)
        except ClientIdDisputeError as error:
            raise self._judged(error) from error
        finally:  # a ping a few times a minute is a sign of the broker
            continuity = wanted.continuity
            continuity.heard = continuity.clock() - int(connection.silence * 1_000_000)
            if self._kept.has_qos_0:
                continuity.retention = Retention.NOTHING

    def end(self) -> None:
        self._state.end_after(self._connection.ping())

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._dismiss_witness()
        self._note_end()
        self._connection.close(not_open(self._settings.name))
        unsubscribed = self._connection.session.subscriptions.unsubscribed
        self._kept.remove(unsubscribed - self._wanted.filters.keys())
        self._confirm()
        self._remember()

    def retention(self) -> Retention:
        """Return what the broker did with the messages before this connection.

        A broker need not keep messages of QoS 0 (MQTT 5.0, 4.1).
        """
        settings, session = self._settings, self._connection.session
        at_most_once = self._kept.has_qos_0 or not min(settings.qos, session.subscriptions.granted)
        if at_most_once or not settings.session_expiry:
            return Retention.NOTHING
        same = settings.cluster or not self._wanted.addresses.moved
        is_new = self._wanted.made or not session.present
        return Retention.KEPT if same and not is_new else Retention.NEW

    def _take(self, timeout: float) -> Batch | None:
        deadline = monotonic() + timeout
        while (batch := self.queue.take(MAX_BATCH, 0.0)) is None and (
            left := deadline - monotonic()
        ) > 0:
            if not self._connection.lead(left):
                return self.queue.take(MAX_BATCH, left)
        return batch

    def _return(self) -> None:
        """Leave for the first address when nothing is unsettled; read nothing until then."""
        state, addresses = self._state, self._wanted.addresses
        state.leaves = True
        if not self.queue.held:
            self._connection.close(addresses.return_to_first())
        elif not addresses.leave_in_time():
            state.leaves = False
            self._connection.resume_reading()

    def _subscriptions(self, session_present: bool) -> Sequence[RequestedSubscription]:
        """Return the subscriptions: all of them, as a kept session may lack some."""
        wanted, settings = self._wanted, self._settings
        wanted.made |= not session_present
        if self._kept.filters and settings.session_expiry and not session_present:
            log.warning(
                "%s: the broker no longer has our session; messages sent meanwhile are lost",
                settings.name,
            )
        self._kept.subscribe(wanted.filters, present=session_present)
        self._remember()  # before the broker has them: an end of the process loses none
        return wanted.requested_after(self._kept.changed)

    def _confirm(self) -> None:
        """Note the options of the subscriptions, if the broker has answered."""
        subscriptions = self._connection.session.subscriptions
        if self._connection.session.connected and subscriptions.answered:
            self._kept.confirm(self._wanted.filters)

    def _remember(self) -> None:
        lasting = self._kept.filters if self._settings.session_expiry else {}
        memory, made = self._wanted.memory, self._wanted.session_at(self._settings)
        memory.put(self._fact, dict(lasting))
        if self._settings.session_expiry:
            memory.note_made(made)
        else:  # a clean session replaces the kept one
            memory.forget_made(made)

    def _note_end(self) -> None:
        """Note whether the connection ended at the request for the count."""
        asked, connection = self._wanted.count_request, self._connection
        asked.ended(connection.session.subscriptions, lost=connection.failure is not None)
        if asked.ended_last:
            self._wanted.closed.ended_otherwise()

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


def open_intake(wanted: WantedSession) -> MqttIntake:
    """Connect to one address after the other. Raises as `Source.open` does."""

    def connect(settings: MqttSettings) -> MqttIntake:
        intake = MqttIntake(wanted, settings)
        intake.open()
        return intake

    intake = wanted.addresses.connect(partial(wanted.count_request.attempt, connect))
    wanted.continuity.retention = intake.retention()
    wanted.made = False
    return intake
