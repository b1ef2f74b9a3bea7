"""One connection of the vendor's client, from connecting to its loss.

A `MessagingService` cannot be connected twice: after a loss, the next `open` of the owner makes a
new connection with new receivers and publishers.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from threading import Lock
from typing import Any
from weakref import finalize

import solace.messaging.config.solace_properties.authentication_properties as user
import solace.messaging.config.solace_properties.service_properties as service
import solace.messaging.config.solace_properties.transport_layer_properties as transport
import solace.messaging.config.solace_properties.transport_layer_security_properties as security
from solace.messaging import messaging_service as driver
from solace.messaging.config.authentication_strategy import ClientCertificateAuthentication, OAuth2
from solace.messaging.errors.pubsubplus_client_error import PubSubPlusClientError
from solace.messaging.utils.life_cycle_control import TerminationNotificationListener

from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.error_codes import connect_error
from gateway.endpoints.solace.native_library import NativeLibrary
from gateway.errors import EndpointError, GatewayError, NotConnectedError
from gateway.setting import current
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

SYSTEM_CA_FOLDER = "/etc/ssl/certs"
_MILLISECONDS = 1_000  # in a second
_LIBRARY_LOGGERS = ("core", "core.api", "connections", "publisher", "receiver", "utils")


class SolaceConnection(
    driver.ServiceInterruptionListener,  # type: ignore[misc]  # the driver has no types
    driver.ReconnectionAttemptListener,  # type: ignore[misc]
    driver.ReconnectionListener,  # type: ignore[misc]
    TerminationNotificationListener,  # type: ignore[misc]
):
    """A connection that may be interrupted for a while and is lost once.

    Mutable: the library's threads set `interrupted` and end it; `_lock` guards `_closed` and
    `_users`.
    """

    def __init__(
        self, settings: SolaceSettings, role: str, on_lost: Callable[[GatewayError], None]
    ) -> None:
        """Connect; `on_lost` is called once.

        Raises:
            NotConnectedError: the broker does not answer.
            EndpointError: the broker refused permanently, or the settings are impossible.
        """
        _silence_library()
        self.name, self._on_lost = settings.name, on_lost
        self._folder: str | None = None
        self._ended = False
        self._lock = Lock()
        self._closed = False
        self._users = 1  # questions that wait for an answer, and the owner until it closes
        self.interrupted = False
        # called by a thread of the library
        self.on_interrupted: Callable[[], None] = lambda: None
        self.on_restored: Callable[[], None] = lambda: None
        self.service: Any = None
        try:
            self._connect(settings, role)
        except BaseException:
            self.close()
            raise

    def end(self, failure: GatewayError) -> bool:
        """Mark the connection as lost and call `on_lost`; return False after the first time."""
        if self._ended:
            return False
        self._ended = True
        self._on_lost(failure)
        return True

    def ask(self, native: NativeLibrary) -> bool:
        """Ask the broker and wait; return whether it answers within ten seconds.

        Nothing ends that wait earlier, and the library reads the session until then: the last
        question releases a connection that was closed meanwhile.
        """
        with self._lock:
            if self._closed:
                return False
            self._users += 1
        try:
            return native.ask(self.service.session.session_pointer)
        finally:
            self._leave()

    def drop(self) -> None:
        """Close, and send nothing that the library has not sent yet.

        `close` sends it, and waits ten seconds for a broker that reads nothing.
        """
        self._ended = True
        with suppress(Exception):  # after a loss the library may raise anything
            self.service.session.session_force_disconnect()
        self.disconnect()
        self.close()

    def disconnect(self) -> None:
        """End the connection, and release nothing."""
        self._ended = True
        with suppress(Exception):
            self.service.session.session_disconnect()

    def close(self) -> None:
        """Release everything; further calls do nothing."""
        self._ended = True
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._leave()

    def on_service_interrupted(self, event: Untyped) -> None:
        self.end(NotConnectedError(f"{self.name}: connection lost: {event.get_cause()}"))

    def on_reconnecting(self, event: Untyped) -> None:
        del event
        self.on_interrupted()
        self.interrupted = True

    def on_reconnected(self, service_event: Untyped) -> None:
        del service_event
        self.interrupted = False
        self.on_restored()

    def on_termination(self, event: Untyped) -> None:
        """End the connection when the broker unbinds the flow of a receiver from its queue."""
        self.end(NotConnectedError(f"{self.name}: the broker ended the flow: {event.cause}"))

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            is_last = not self._users
        if is_last:
            self._release()

    def _release(self) -> None:
        if self.service is not None:
            with suppress(Exception):
                self.service.disconnect()
            with suppress(Exception):
                _finalize(self.service)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self, settings: SolaceSettings, role: str) -> None:
        builder = driver.MessagingService.builder().from_properties(self._properties(settings))
        if (strategy := _authentication(settings)) is not None:
            builder = builder.with_authentication_strategy(strategy)
        name = f"{settings.client_name or settings.name}/{role}/{token_hex(4)}"
        try:
            messaging = self.service = builder.build(name)
            messaging.add_service_interruption_listener(self)
            messaging.add_reconnection_attempt_listener(self)
            messaging.add_reconnection_listener(self)
            messaging.connect()
        except (PubSubPlusClientError, ValueError) as error:
            raise connect_error(settings, error) from error

    def _properties(self, settings: SolaceSettings) -> Mapping[str, object]:
        properties: dict[str, object] = {
            transport.HOST: settings.url,
            transport.CONNECTION_ATTEMPTS_TIMEOUT: int(settings.connect_timeout * _MILLISECONDS),
            transport.CONNECTION_RETRIES: 0,
            transport.RECONNECTION_ATTEMPTS: settings.reconnect_attempts,
            transport.RECONNECTION_ATTEMPTS_WAIT_INTERVAL: int(
                settings.reconnect_wait * _MILLISECONDS
            ),
            transport.KEEP_ALIVE_INTERVAL: int(settings.keepalive * _MILLISECONDS),
            service.VPN_NAME: settings.vpn,
            user.SCHEME_BASIC_USER_NAME: settings.username,
            user.SCHEME_BASIC_PASSWORD: current(settings.password) or "",
        }
        if any(each.is_encrypted for each in settings.servers()):
            properties.update(self._tls_properties(settings, settings.tls or TlsSettings()))
        return properties

    def _tls_properties(self, settings: SolaceSettings, tls: TlsSettings) -> dict[str, object]:
        if tls.server_hostname is not None:
            raise EndpointError(
                f"{settings.name}: tls.server_hostname: the library expects the name in `url`"
            )
        store = settings.trust_store or self._make_trust_store(tls.ca_file) or SYSTEM_CA_FOLDER
        return {
            security.TRUST_STORE_PATH: store,
            security.CERT_VALIDATED: tls.verify,
            security.CERT_REJECT_EXPIRED: tls.verify,
            security.CERT_VALIDATE_SERVERNAME: tls.verify,
        }

    def _make_trust_store(self, ca_file: str | None) -> str | None:
        """Return a folder with a copy of the file: the library accepts folders only."""
        if ca_file is None:
            return None
        self._folder = mkdtemp(prefix="gateway-solace-")
        try:
            shutil.copy(ca_file, Path(self._folder) / "ca.pem")
        except OSError as error:
            raise EndpointError(f"{self.name}: tls.ca_file: {error}") from error
        return self._folder


def _authentication(settings: SolaceSettings) -> Untyped:
    if settings.token_file is not None:
        try:
            token = Path(settings.token_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise EndpointError(f"{settings.name}: token_file: {error}") from error
        return OAuth2.of(access_token=token, oidc_id_token=None)
    tls = settings.tls
    if tls is not None and tls.cert_file is not None:
        key = tls.key_file or tls.cert_file
        return ClientCertificateAuthentication.of(tls.cert_file, key, tls.key_password)
    return None


def detach_finalizers(receiver: Untyped) -> None:
    """Detach the finalizers of a closed receiver.

    They refer to the object whose end they await, so that each would keep 90 KB for ever.
    """
    for each in _finalizers(receiver):
        each.detach()


def _finalize(messaging: Untyped) -> None:
    """Run the finalizers of a service, which would otherwise keep it alive.

    After a refused or lost connection `disconnect` leaves a thread and 24 KB behind.
    """
    session = messaging.session
    for owner in (messaging, session, session._context):  # noqa: SLF001
        for each in _finalizers(owner):
            each()


def _finalizers(owner: object) -> list[finalize[..., object]]:
    return [each for each in vars(owner).values() if isinstance(each, finalize)]


def _silence_library() -> None:
    """Silence the library's loggers: the gateway reports the same errors."""
    if not log.isEnabledFor(logging.DEBUG):
        for name in _LIBRARY_LOGGERS:
            logging.getLogger(f"solace.messaging.{name}").setLevel(logging.CRITICAL)
