"""A connection to a JMS server: log-in, failover over several URLs, and the class of a failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from gateway.endpoints.jms.connection_factory import ACTIVEMQ, ACTIVEMQ_FACTORY, TIBCO, open_factory
from gateway.endpoints.jms.jvm import Java, JavaError, JmsLibrary, describe, is_permanent
from gateway.endpoints.settings.jms import EMS_FACTORY, JmsSettings
from gateway.endpoints.tls import encryption_hint
from gateway.errors import EndpointError, GatewayError, NotConnectedError
from gateway.setting import current

log = logging.getLogger(__name__)
T = TypeVar("T")

CLIENT_ACKNOWLEDGE = 2  # javax.jms.Session
ACTIVEMQ_INDIVIDUAL = 4  # ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE
EMS_EXPLICIT = ("EXPLICIT_CLIENT_ACKNOWLEDGE", 23)  # constants of Tibjms, by javadoc 10.2.1
EMS_LAZY = ("EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE", 24)
ACK_ALL, ACK_EACH, ACK_TRANSACTED = 0, 1, 2  # modes of Receiver.java
_REFUSED = "Connection refused"  # a port that nobody listens at
DUPLICATE_ID = (
    "perhaps another client uses this id; give each client an id of its own (`client_id`)"
)


@dataclass(frozen=True, slots=True)
class JmsConnection:
    """An open connection and its `ConnectionMonitor`, which keeps the first failure.

    `address` is HOST:PORT of the server, empty where the library does not tell.
    """

    settings: JmsSettings
    library: JmsLibrary
    connection: Java
    monitor: Java = None
    address: str = ""

    @property
    def received(self) -> int:
        """A number that changes when the server has sent something; 0 where nothing tells."""
        transport = getattr(self.connection, "getTransport", None)  # of ActiveMQ
        return 0 if transport is None else int(transport().getReceiveCounter())

    def close(self, timeout: float) -> None:
        """Close, waiting at most `timeout` seconds; never raises."""
        try:
            monitor = self.library.helper("ConnectionMonitor")
            monitor.close(self.connection, max(1, int(timeout * 1000)))
        except (JavaError, GatewayError) as error:
            log.debug("closing: %s", error)

    def set_up(
        self, call: Callable[[JmsConnection], T], refused: type[EndpointError] = EndpointError
    ) -> T:
        """Return what `call` makes of the new connection.

        The connection is closed when that fails or takes too long: the longer of
        `connect_timeout` and `answer_timeout`. ActiveMQ's library connects on the first call that
        needs the server.

        Raises:
            NotConnectedError: the server does not answer, or the connection is lost.
            EndpointError: the server refuses permanently; of the class `refused` then.
        """
        seconds = max(self.settings.connect_timeout, self.settings.answer_timeout)
        try:
            with self.closed_on_failure(seconds):
                return self.library.run(partial(call, self))
        except JavaError as error:
            raise _connect_error(self.settings, error, refused) from error

    @contextmanager
    def closed_on_failure(self, seconds: float) -> Iterator[None]:
        """Close the connection when a call fails, or takes more than `seconds`.

        A call waits for ever for a server that keeps silent.

        Raises:
            NotConnectedError: a call failed, or lasted, for that reason.
        """
        late, name = threading.Event(), self.settings.name

        def close() -> None:
            late.set()
            self.close(0)

        timer = threading.Timer(seconds, close)
        timer.daemon = True
        with ExitStack() as on_failure:
            on_failure.callback(self.close, self.settings.close_timeout)
            timer.start()
            try:
                yield
            except JavaError as error:
                if late.is_set():
                    text = f"{name}: the server did not answer within {seconds:g} s"
                    raise NotConnectedError(text) from error
                raise
            finally:
                timer.cancel()
            if late.is_set():
                raise NotConnectedError(f"{name}: the server took more than {seconds:g} s")
            on_failure.pop_all()


def connect(settings: JmsSettings, library: JmsLibrary, client_id: str) -> JmsConnection:
    """Return a connection to the first of `urls` that answers; it does not deliver yet.

    Raises:
        NotConnectedError: no server answers.
        EndpointError: a server refused the connection permanently.
    """
    failure: Exception = EndpointError(f"{settings.name}: `urls` is empty")
    for url in server_urls(settings):
        try:
            return library.run(partial(_connect, settings, library, url, client_id))
        except (NotConnectedError, JavaError) as error:
            failure = error
            if is_permanent(error):
                break
    if isinstance(failure, JavaError):
        raise _connect_error(settings, failure, EndpointError) from failure
    raise failure


def _connect_error(
    settings: JmsSettings, error: BaseException, refused: type[EndpointError]
) -> EndpointError:
    """Return the error for a Java exception before the connection is in use."""
    permanent = is_permanent(error)
    if type(error).__name__.endswith("InvalidClientIDException"):
        hint = f"; {DUPLICATE_ID}"
    else:
        hint = "" if permanent else encryption_hint(settings) or _tls_hint(settings, error)
    error_class = refused if permanent else NotConnectedError
    text, hosts = describe(error), [each.host for each in settings.servers()]
    if hosts and not any(each in text for each in hosts):
        text = f"{', '.join(settings.urls)}: {text}"
    return error_class(f"{settings.name}: {text}{hint}")


def _tls_hint(settings: JmsSettings, error: BaseException) -> str:
    """Return the settings to look at: a library tells of a refused certificate by chance."""
    if _REFUSED in str(error) or not any(each.is_encrypted for each in settings.servers()):
        return ""
    if settings.factory.startswith(TIBCO):
        names = "`tls.ca_file` and `tls.cert_file`"
    else:
        names = "`trustStore` and `keyStore` in `properties`"
    return f"; see the certificates of the server and of the endpoint: {names}"


def server_urls(settings: JmsSettings) -> tuple[str, ...]:
    """Return the URLs to try in turn; EMS gets all its servers in one text.

    A single EMS server is listed twice: with one entry the EMS client never reconnects.
    """
    if not settings.urls or settings.jndi_factory or not settings.factory.startswith(TIBCO):
        return settings.urls
    joined = ",".join(settings.urls)
    return (joined if "," in joined else f"{joined},{joined}",)


def _connect(settings: JmsSettings, library: JmsLibrary, url: str, client_id: str) -> JmsConnection:
    factory = open_factory(settings, library, url)
    if not hasattr(factory, "createConnection"):
        raise EndpointError(
            f"{settings.name}: {factory.getClass().getName()} is no connection factory of JMS;"
            f" set `factory` to the library's own, such as {EMS_FACTORY} or {ACTIVEMQ_FACTORY}"
        )
    if settings.username is None:
        connection = factory.createConnection()
    else:
        connection = factory.createConnection(settings.username, current(settings.password) or "")
    opened = JmsConnection(settings, library, connection)
    with opened.closed_on_failure(settings.connect_timeout):
        if client_id:
            connection.setClientID(client_id)
        monitor = library.helper("ConnectionMonitor")(connection)
        address = "" if settings.jndi_factory else _address(library, connection, url)
        return replace(opened, monitor=monitor, address=address)


def _address(library: JmsLibrary, connection: Java, url: str) -> str:
    """Return HOST:PORT of the server that `url` names, or that EMS chose of its servers."""
    if str(connection.getClass().getName()).startswith(TIBCO):
        with suppress(JavaError, AttributeError):  # for display
            url = str(library.find(f"{TIBCO}Tibjms").getConnectionActiveURL(connection))
    is_list = "," in url or "(" in url  # such as failover:(tcp://a:1,tcp://b:1)
    return "" if is_list else urlsplit(url).netloc.rpartition("@")[2]


def acknowledgement_modes(settings: JmsSettings, connection: JmsConnection) -> tuple[int, int]:
    """Return the modes of Receiver.java and of the session for the setting `acknowledge`.

    Raises:
        EndpointError: the library cannot acknowledge single messages.
    """
    wanted = settings.acknowledge
    if wanted == "client":
        return ACK_ALL, CLIENT_ACKNOWLEDGE
    if wanted == "transacted":
        return ACK_TRANSACTED, 0
    name = str(connection.connection.getClass().getName())
    if name.startswith(TIBCO):
        tibjms = connection.library.find(f"{TIBCO}Tibjms")
        constant, number = EMS_LAZY if wanted == "explicit_lazy" else EMS_EXPLICIT
        return ACK_EACH, int(getattr(tibjms, constant, number))
    if name.startswith(ACTIVEMQ) and wanted == "explicit":
        return ACK_EACH, ACTIVEMQ_INDIVIDUAL
    raise EndpointError(
        f"{settings.name}: {name} has no {wanted} acknowledgement that we know; set `acknowledge`"
        " to client"
    )
