"""A connection to a JMS server: the factory by class or JNDI, log-in, and whose fault a failure is.

What is EMS's own stands in this file: its URL lists, its TLS keys, its acknowledgement mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.jvm import Java, JavaError, Library
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import DriverMissingError, EndpointError, GatewayError, NotConnectedError

log = logging.getLogger(__name__)

TIBCO = "com.tibco.tibjms."
SSL = f"{TIBCO}ssl."
ACTIVEMQ = "org.apache.activemq."
AUTO_ACKNOWLEDGE, CLIENT_ACKNOWLEDGE = 1, 2  # javax.jms.Session
ACTIVEMQ_INDIVIDUAL = 4  # ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE
EMS_EXPLICIT = ("EXPLICIT_CLIENT_ACKNOWLEDGE", 23)  # constants of Tibjms, by javadoc 10.2.1
EMS_LAZY = ("EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE", 24)
ALL, EACH, TRANSACTED = 0, 1, 2  # Receiver.java's modes

_FOR_GOOD = frozenset(  # what trying again does not mend
    {"JMSSecurityException", "InvalidDestinationException", "InvalidSelectorException"}
)


@dataclass(frozen=True, slots=True)
class Link:
    """An open connection and what watches over it."""

    library: Library
    connection: Java
    watch: Java

    def close(self, timeout: float) -> None:
        """Close, waiting at most `timeout` seconds; never raises."""
        try:
            self.library.helper("Watch").close(self.connection, int(timeout * 1000))
        except (JavaError, GatewayError) as error:
            log.debug("closing: %s", error)


def open_library(settings: JmsSettings) -> Library:
    """Start Java when it does not run, and load the library.

    Raises:
        DriverMissingError: a jar, a class or Java itself is missing; the text says what to do.
    """
    jars = jvm.find_jars(settings.classpath)
    jvm.start_jvm(settings.jvm_options)
    factory = "" if settings.jndi_factory else settings.factory
    return jvm.load_library(jars, settings.api, factory)


def connect(settings: JmsSettings, library: Library, client_id: str) -> Link:
    """An open connection that does not deliver yet: the first of `urls` that answers.

    Raises:
        NotConnectedError: none answers.
        EndpointError: one refused us for good.
    """
    failure: Exception | None = None
    for url in server_urls(settings):
        try:
            return library.run(lambda url=url: _connect(settings, library, url, client_id))  # type: ignore[misc]  # mypy cannot infer a default
        except JavaError as error:
            failure = error
            if is_for_good(error):
                break
    assert failure is not None  # noqa: S101  # there is one URL at least
    raise as_failure(settings.name, failure) from failure


def server_urls(settings: JmsSettings) -> tuple[str, ...]:
    """What to connect to in turn; EMS takes its servers in one text.

    A single server stands twice in it, or the EMS client would never try to reach it again.
    """
    urls = settings.urls
    if not urls:
        raise EndpointError(f"{settings.name}: `urls` is empty")
    if not settings.factory.startswith(TIBCO) or settings.jndi_factory:
        return urls
    joined = ",".join(urls)
    return (joined if "," in joined else f"{joined},{joined}",)


def _connect(settings: JmsSettings, library: Library, url: str, client_id: str) -> Link:
    factory = _look_up(settings, library, url) if settings.jndi_factory else None
    if factory is None:
        factory = _make_factory(settings, library, url)
    _tune(settings, library, factory)
    if settings.username is None:
        connection = factory.createConnection()
    else:
        connection = factory.createConnection(settings.username, settings.password or "")
    try:
        if client_id:
            connection.setClientID(client_id)
        return Link(library, connection, library.helper("Watch")(connection))
    except JavaError:
        connection.close()
        raise


def _make_factory(settings: JmsSettings, library: Library, url: str) -> Java:
    kind = library.find(settings.factory)
    pairs = read_pairs(settings)
    if settings.factory.startswith(TIBCO):
        parameters = {name: value for name, value in pairs.items() if name.startswith(TIBCO)}
        if settings.tls is not None:
            parameters |= ems_tls(settings.tls)
        table = library.find("java.util.HashMap")()
        for name, value in parameters.items():
            table.put(jvm.text(name), jvm.text(value))
        factory = kind(jvm.text(url), jvm.text(None), table) if parameters else kind(jvm.text(url))
        pairs = {name: value for name, value in pairs.items() if name not in parameters}
    else:
        if settings.tls is not None:
            raise EndpointError(
                f"{settings.name}: `tls` is EMS's; give this library its own `properties`, or"
                " javax.net.ssl.trustStore in `jvm_options`"
            )
        factory = _construct(kind, url)
    for name, value in pairs.items():
        _set(settings, factory, name, value)
    return factory


def _construct(kind: Java, url: str) -> Java:
    try:
        return kind(jvm.text(url))
    except TypeError:  # it has no constructor for a URL, so `properties` say where to go
        return kind()


def _set(settings: JmsSettings, factory: Java, name: str, value: str) -> None:
    setter = getattr(factory, f"set{name[:1].upper()}{name[1:]}", None)
    if setter is None:
        raise EndpointError(f"{settings.name}: {settings.factory} has no property {name!r}")
    readers: tuple[Callable[[str], object], ...] = (jvm.text, int, _flag)
    for read in readers:
        try:
            setter(read(value))
        except (TypeError, ValueError):
            continue
        return
    raise EndpointError(f"{settings.name}: the property {name!r} does not take {value!r}")


def _flag(value: str) -> bool:
    return {"true": True, "false": False}[value] if value in ("true", "false") else bool(int(value))


def _look_up(settings: JmsSettings, library: Library, url: str) -> Java:
    table = library.find("java.util.Hashtable")()
    facts = {
        "java.naming.factory.initial": settings.jndi_factory,
        "java.naming.provider.url": settings.jndi_url or url,
        **read_pairs(settings),
    }
    if settings.username is not None:
        facts["java.naming.security.principal"] = settings.username
        facts["java.naming.security.credentials"] = settings.password or ""
    for name, value in facts.items():
        table.put(jvm.text(name), jvm.text(value))
    library.find(settings.jndi_factory)  # says which jar is missing, as JNDI would not
    found = library.find("javax.naming.InitialContext")(table).lookup(settings.lookup)
    if not isinstance(found, library.jms("ConnectionFactory")):
        raise EndpointError(
            f"{settings.name}: {settings.lookup!r} in JNDI is no {library.package}.jms"
            f" connection factory but {found.getClass().getName()}"
        )
    return found


def _tune(settings: JmsSettings, library: Library, factory: Java) -> None:
    name = str(factory.getClass().getName())
    if name.startswith(TIBCO):
        # The client reconnects by itself; we must hear of it, for it forgets acknowledgements.
        tibjms = library.find(f"{TIBCO}Tibjms")
        if hasattr(tibjms, "setExceptionOnFTSwitch"):
            tibjms.setExceptionOnFTSwitch(True)
        if hasattr(factory, "setConnAttemptTimeout"):
            factory.setConnAttemptTimeout(int(settings.connect_timeout * 1000))
    elif name.startswith(ACTIVEMQ):  # by itself it reads 32,766 messages of a topic ahead
        factory.getPrefetchPolicy().setAll(settings.prefetch or settings.batch)


def read_pairs(settings: JmsSettings) -> dict[str, str]:
    """`properties`, split.

    Raises:
        EndpointError: one is no `name=value`.
    """
    pairs: dict[str, str] = {}
    for entry in settings.properties:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise EndpointError(f"{settings.name}: the property {name!r} is no name=value")
        pairs[name.strip()] = value.strip()
    return pairs


def ems_tls(tls: TlsSettings) -> Mapping[str, str]:
    """The keys of an EMS factory's third argument (TibjmsSSL)."""
    verify = "true" if tls.verify else "false"
    facts = {
        f"{SSL}enable_verify_host": verify,
        f"{SSL}enable_verify_hostname": verify,
        f"{SSL}trusted_certs": tls.ca_file,
        f"{SSL}identity": tls.cert_file,
        f"{SSL}private_key": tls.key_file,
        f"{SSL}password": tls.key_password,
        f"{SSL}expected_hostname": tls.server_hostname,
    }
    return {name: value for name, value in facts.items() if value is not None}


def acknowledgement(settings: JmsSettings, link: Link) -> tuple[int, int]:
    """Receiver.java's mode and the session's, for `acknowledge` and this library.

    Raises:
        EndpointError: the library has no acknowledgement of single messages.
    """
    wanted = settings.acknowledge
    if wanted == "client":
        return ALL, CLIENT_ACKNOWLEDGE
    if wanted == "transacted":
        return TRANSACTED, 0
    name = str(link.connection.getClass().getName())
    if name.startswith(TIBCO):
        tibjms = link.library.find(f"{TIBCO}Tibjms")
        constant, number = EMS_LAZY if wanted == "explicit_lazy" else EMS_EXPLICIT
        return EACH, int(getattr(tibjms, constant, number))
    if name.startswith(ACTIVEMQ) and wanted == "explicit":
        return EACH, ACTIVEMQ_INDIVIDUAL
    raise EndpointError(
        f"{settings.name}: {name} has no {wanted} acknowledgement that we know; set `acknowledge`"
        " to client"
    )


def describe(error: BaseException) -> str:
    """A Java exception in one line, its class without the package."""
    name = type(error).__name__.rpartition(".")[2]
    text = " ".join(str(error).split())
    return text if text.startswith(name) else f"{name}: {text}"


def is_for_good(error: BaseException) -> bool:
    return type(error).__name__.rpartition(".")[2] in _FOR_GOOD


def as_failure(where: str, error: BaseException) -> GatewayError:
    """The gateway's error for an exception of Java while connecting or subscribing."""
    if isinstance(error, TypeError):
        return DriverMissingError(f"{where}: {error}")
    kind = EndpointError if is_for_good(error) else NotConnectedError
    return kind(f"{where}: {describe(error)}")
