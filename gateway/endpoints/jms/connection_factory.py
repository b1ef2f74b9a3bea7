"""JMS connection factories, made from a class or found in JNDI, with each vendor's settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.jvm import Java, JmsLibrary
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import EndpointError
from gateway.setting import current

log = logging.getLogger(__name__)

TIBCO = "com.tibco.tibjms."
EMS_SSL = f"{TIBCO}ssl."
ACTIVEMQ = "org.apache.activemq."
ACTIVEMQ_FACTORY = f"{ACTIVEMQ}ActiveMQConnectionFactory"
READ_TIMEOUT_MS = 30_000
FRAMES_IN_HEAP = 2  # of the largest size
_ANSWER_CHECK = "org/apache/activemq/openwire/OpenWireUtil.class"
_SOCKET_SCHEMES = frozenset({"tcp", "ssl", "nio", "nio+ssl"})


def open_factory(settings: JmsSettings, library: JmsLibrary, url: str) -> Java:
    """Return the factory for `url`.

    Raises:
        EndpointError: a property, TLS or a JNDI name does not fit the library.
        DriverMissingError: a class is in no jar.
    """
    if settings.jndi_factory:
        factory = _look_up(settings, library, url)
    else:
        factory = _make_factory(settings, library, url)
    _configure(settings, library, factory)
    return factory


def _make_factory(settings: JmsSettings, library: JmsLibrary, url: str) -> Java:
    factory_class = library.find(settings.factory)
    properties = read_properties(settings)
    if settings.factory.startswith(TIBCO):
        parameters = {name: value for name, value in properties.items() if name.startswith(TIBCO)}
        if settings.tls is not None:
            parameters |= ems_tls(settings.tls)
        address = jvm.text(url)
        if parameters:
            table = library.find("java.util.HashMap")(parameters)
            factory = factory_class(address, jvm.text(None), table)
        else:
            factory = factory_class(address)
        properties = {name: value for name, value in properties.items() if name not in parameters}
    else:
        if settings.tls is not None:
            raise EndpointError(
                f"{settings.name}: `tls` is for EMS only; give this library its own `properties`,"
                " or javax.net.ssl.trustStore in `jvm_options`"
            )
        if settings.factory.startswith(ACTIVEMQ):
            _warn_of_code_from_servers(settings, library)
            url = bounded_url(url, jvm.max_heap() // FRAMES_IN_HEAP)
        factory = _construct(factory_class, url)
    for name, value in properties.items():
        _set_property(settings, factory, name, value)
    return factory


def bounded_url(url: str, frame_bytes: int) -> str:
    """Return the URL of an ActiveMQ broker with limits for what its server sends.

    The library waits for a TLS handshake while it creates a connection, without a limit of its
    own. It tolerates reads that time out, and closes a connection after 30 seconds of silence.
    A packet has at most `frame_bytes`. From 5.16.8, 5.17.7 and 5.18.7 on the library allocates
    no more for the lengths in it (CVE-2025-27533); before them it allocates what they claim.
    """
    scheme, _, rest = url.partition(":")
    if scheme not in _SOCKET_SCHEMES:
        return url
    for option in (f"soTimeout={READ_TIMEOUT_MS}", f"wireFormat.maxFrameSize={frame_bytes}"):
        if option.partition("=")[0] + "=" not in rest:
            url += f"{'&' if '?' in url else '?'}{option}"
    return url


def _warn_of_code_from_servers(settings: JmsSettings, library: JmsLibrary) -> None:
    """Warn of a library that makes an object of any class that a server names (CVE-2023-46604)."""
    if not library.has(_ANSWER_CHECK):
        log.warning(
            "%s: the ActiveMQ library lets a server run code (CVE-2023-46604); use"
            " activemq-client 5.15.16, 5.16.7, 5.17.6, 5.18.3 or newer",
            settings.name,
        )


def _construct(factory_class: Java, url: str) -> Java:
    with suppress(TypeError):  # no constructor for a URL: `properties` name the server
        return factory_class(jvm.text(url))
    try:
        return factory_class()
    except TypeError as error:
        name = factory_class.class_.getName()
        raise EndpointError(
            f"jms: {name} cannot be created ({error}); set `factory` to the library's connection"
            f" factory, such as {ACTIVEMQ_FACTORY}"
        ) from error


def _set_property(settings: JmsSettings, factory: Java, name: str, value: str) -> None:
    setter = getattr(factory, f"set{name[:1].upper()}{name[1:]}", None)
    if setter is None:
        raise EndpointError(f"{settings.name}: {settings.factory} has no property {name!r}")
    readers: tuple[Callable[[str], object], ...] = (jvm.text, int, _read_bool)
    for read in readers:
        with suppress(TypeError, ValueError):
            setter(read(value))
            return
    raise EndpointError(f"{settings.name}: the property {name!r} does not take {value!r}")


def _read_bool(value: str) -> bool:
    return {"true": True, "false": False}[value] if value in ("true", "false") else bool(int(value))


def _look_up(settings: JmsSettings, library: JmsLibrary, url: str) -> Java:
    environment = {
        "java.naming.factory.initial": settings.jndi_factory,
        "java.naming.provider.url": settings.jndi_url or url,
        **read_properties(settings),
    }
    if settings.username is not None:
        environment["java.naming.security.principal"] = settings.username
        environment["java.naming.security.credentials"] = current(settings.password) or ""
    library.find(settings.jndi_factory)  # the error names the missing jar; JNDI's does not
    table = library.find("java.util.Hashtable")(environment)
    found = library.find("javax.naming.InitialContext")(table).lookup(settings.lookup)
    if not isinstance(found, library.jms("ConnectionFactory")):
        raise EndpointError(
            f"{settings.name}: {settings.lookup!r} in JNDI is no {library.package}.jms"
            f" connection factory but {found.getClass().getName()}"
        )
    return found


def _configure(settings: JmsSettings, library: JmsLibrary, factory: Java) -> None:
    name = str(factory.getClass().getName())
    if name.startswith(TIBCO):
        # The client reconnects silently and forgets acknowledgements; this makes it report that.
        tibjms = library.find(f"{TIBCO}Tibjms")
        if hasattr(tibjms, "setExceptionOnFTSwitch"):
            tibjms.setExceptionOnFTSwitch(True)
        if hasattr(factory, "setConnAttemptTimeout"):
            factory.setConnAttemptTimeout(int(settings.connect_timeout * 1000))
    elif name.startswith(ACTIVEMQ):  # its default prefetches 32,766 messages of a topic
        factory.getPrefetchPolicy().setAll(settings.prefetch or settings.batch)
        # Its default moves what waits through seven transacted connections to a dead letter queue.
        factory.getRedeliveryPolicy().setMaximumRedeliveries(-1)
        if hasattr(factory, "setCloseTimeout"):  # else a silent broker delays `close` by 15 s
            factory.setCloseTimeout(int(settings.close_timeout * 1000))


def read_properties(settings: JmsSettings) -> dict[str, str]:
    """Return `properties` as names and values.

    Raises:
        EndpointError: an entry is not a `name=value`.
    """
    properties: dict[str, str] = {}
    for entry in settings.properties:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise EndpointError(f"{settings.name}: the property {name!r} is no name=value")
        properties[name.strip()] = value.strip()
    return properties


def ems_tls(tls: TlsSettings) -> Mapping[str, str]:
    """Return the third argument of an EMS factory's constructor (keys of TibjmsSSL)."""
    verify = "true" if tls.verify else "false"
    parameters = {
        f"{EMS_SSL}enable_verify_host": verify,
        f"{EMS_SSL}enable_verify_hostname": verify,
        f"{EMS_SSL}trusted_certs": tls.ca_file,
        f"{EMS_SSL}identity": tls.cert_file,
        f"{EMS_SSL}private_key": tls.key_file,
        f"{EMS_SSL}password": tls.key_password,
        f"{EMS_SSL}expected_hostname": tls.server_hostname,
    }
    return {name: value for name, value in parameters.items() if value is not None}
