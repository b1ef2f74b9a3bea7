"""One connection of the vendor's client: how it is made, and when it is over.

A `MessagingService` cannot be connected twice, so a link that was lost stays lost and the next
`open` of its owner makes a new one, with everything that belongs to it.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any
from weakref import finalize

from solace.messaging.config.authentication_strategy import (
    ClientCertificateAuthentication,
    OAuth2,
)
from solace.messaging.config.solace_properties import (
    authentication_properties as user,
)
from solace.messaging.config.solace_properties import (
    service_properties as service,
)
from solace.messaging.config.solace_properties import (
    transport_layer_properties as transport,
)
from solace.messaging.config.solace_properties import (
    transport_layer_security_properties as security,
)
from solace.messaging.errors.pubsubplus_client_error import PubSubPlusClientError
from solace.messaging.messaging_service import (
    MessagingService,
    ReconnectionAttemptListener,
    ReconnectionListener,
    ServiceInterruptionListener,
)

from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.refusals import connect_error
from gateway.errors import EndpointError, GatewayError, NotConnectedError

log = logging.getLogger(__name__)

SYSTEM_AUTHORITIES = "/etc/ssl/certs"
_MILLI = 1_000
_LOUD = ("core", "core.api", "connections", "publisher", "receiver", "utils")  # their loggers


class Link:
    """Mutable: connected, perhaps away for a while, then lost. `lost` is called once."""

    def __init__(
        self, settings: SolaceSettings, role: str, lost: Callable[[GatewayError], None]
    ) -> None:
        """Connect.

        Raises:
            NotConnectedError: nobody answers there now.
            EndpointError: refused for good, or the settings cannot work.
        """
        _quiet()
        self._name, self._lost = settings.name, lost
        self._folder: str | None = None
        self._ended = False
        self.away = False
        self.service: Any = None
        try:
            self._connect(settings, role)
        except BaseException:
            self.close()
            raise

    def end(self, failure: GatewayError) -> None:
        """The connection is of no more use; tells its owner the first time."""
        if not self._ended:
            self._ended = True
            self._lost(failure)

    def close(self) -> None:
        """Release everything; twice is fine."""
        self._ended = True
        if self.service is not None:
            with suppress(Exception):  # the library raises what it likes when it is half gone
                self.service.disconnect()
            with suppress(Exception):
                _finalize(self.service)
        self._remove_folder()

    def _connect(self, settings: SolaceSettings, role: str) -> None:
        builder = MessagingService.builder().from_properties(self._properties(settings))
        if (strategy := _authentication(settings)) is not None:
            builder = builder.with_authentication_strategy(strategy)
        name = f"{settings.client_name or settings.name}/{role}/{token_hex(4)}"
        try:
            made = self.service = builder.build(name)
            made.add_service_interruption_listener(_Interruption(self))
            made.add_reconnection_attempt_listener(_Attempt(self))
            made.add_reconnection_listener(_Return(self))
            made.connect()
        except (PubSubPlusClientError, ValueError) as error:
            raise connect_error(settings, error) from error

    def _properties(self, settings: SolaceSettings) -> Mapping[str, object]:
        found: dict[str, object] = {
            transport.HOST: settings.url,
            transport.CONNECTION_ATTEMPTS_TIMEOUT: int(settings.connect_timeout * _MILLI),
            transport.CONNECTION_RETRIES: 0,
            transport.RECONNECTION_ATTEMPTS: settings.reconnect_attempts,
            transport.RECONNECTION_ATTEMPTS_WAIT_INTERVAL: int(settings.reconnect_wait * _MILLI),
            transport.KEEP_ALIVE_INTERVAL: int(settings.keepalive * _MILLI),
            service.VPN_NAME: settings.vpn,
            user.SCHEME_BASIC_USER_NAME: settings.username,
            user.SCHEME_BASIC_PASSWORD: settings.password or "",
        }
        if "tcps:" in settings.url:
            found.update(self._security(settings, settings.tls or TlsSettings()))
        return found

    def _security(self, settings: SolaceSettings, tls: TlsSettings) -> dict[str, object]:
        if tls.server_hostname is not None:
            raise EndpointError(
                f"{settings.name}: tls.server_hostname: the library expects the name in `url`"
            )
        store = settings.trust_store or self._store_of(tls.ca_file) or SYSTEM_AUTHORITIES
        return {
            security.TRUST_STORE_PATH: store,
            security.CERT_VALIDATED: tls.verify,
            security.CERT_REJECT_EXPIRED: tls.verify,
            security.CERT_VALIDATE_SERVERNAME: tls.verify,
        }

    def _store_of(self, ca_file: str | None) -> str | None:
        """A folder of its own for one file, for the library takes nothing else."""
        if ca_file is None:
            return None
        self._folder = tempfile.mkdtemp(prefix="gateway-solace-")
        try:
            shutil.copy(ca_file, Path(self._folder) / "authorities.pem")
        except OSError as error:
            raise EndpointError(f"{self._name}: tls.ca_file: {error}") from error
        return self._folder

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


class _Interruption(ServiceInterruptionListener):  # type: ignore[misc]  # the driver has no types
    def __init__(self, link: Link) -> None:
        self._link = link

    def on_service_interrupted(self, event: Any) -> None:  # noqa: ANN401
        link = self._link
        link.end(NotConnectedError(f"{link._name}: connection lost: {event.get_cause()}"))  # noqa: SLF001


class _Attempt(ReconnectionAttemptListener):  # type: ignore[misc]  # the driver has no types
    def __init__(self, link: Link) -> None:
        self._link = link

    def on_reconnecting(self, event: Any) -> None:  # noqa: ANN401
        del event
        self._link.away = True


class _Return(ReconnectionListener):  # type: ignore[misc]  # the driver has no types
    def __init__(self, link: Link) -> None:
        self._link = link

    def on_reconnected(self, service_event: Any) -> None:  # noqa: ANN401
        del service_event
        self._link.away = False


def _authentication(settings: SolaceSettings) -> Any:  # noqa: ANN401  # the driver's strategy
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


def let_go(receiver: Any) -> None:  # noqa: ANN401  # the driver's receiver
    """Forget what its finalizers would do, which end with the link, and free what they hold.

    They hold what they wait for, and so would be kept for ever: 90 KB each.
    """
    for each in _finalizers(receiver):
        each.detach()


def _finalize(made: Any) -> None:  # noqa: ANN401  # a service
    """Do what the library would do when nobody holds `made`; its own finalizers always do.

    `disconnect` leaves a connection that was refused or lost as it is: a thread and 24 KB each.
    """
    session = made.session
    for owner in (made, session, session._context):  # noqa: SLF001
        for each in _finalizers(owner):
            each()


def _finalizers(owner: object) -> list[finalize[..., object]]:
    return [each for each in vars(owner).values() if isinstance(each, finalize)]


def _quiet() -> None:
    """What goes wrong is reported by us; the library would print it, too."""
    if not log.isEnabledFor(logging.DEBUG):
        for name in _LOUD:
            logging.getLogger(f"solace.messaging.{name}").setLevel(logging.CRITICAL)
