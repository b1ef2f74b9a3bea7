"""The clients of librdkafka: their configuration, their connection, and their errors in sentences.

Made: one client by each opened source or sink. Used: a client finds the servers of its cluster by
itself, and connects to them again. Ended: the source or sink ends it at a lost cluster or at a
fatal error, and makes another one. The queues of the library have the limits of the settings.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from threading import Lock
from time import monotonic, time
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from gateway.endpoints.settings.base import TlsSettings, server_of
from gateway.endpoints.settings.kafka import PORT, KafkaSettings
from gateway.endpoints.tls import connect_error
from gateway.errors import EndpointError, NotConnectedError
from gateway.setting import current
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

CONTROL: Final = 65_536  # bytes of an answer beside its messages
METADATA: Final = 8_388_608  # bytes of the longest answer about a cluster
BATCH: Final = 131_072  # bytes of a batch; no topic in use has a lower limit
IDLE: Final = 180.0  # seconds; a server ends idle connections later, which would count as a loss
QUEUE: Final = 134_217_728  # bytes: a batch that is longer than its window has room
TOKEN_LIFE: Final = 300.0  # seconds until a token is read again
_STEP: Final = 0.2  # seconds of a question for the cluster
_MS: Final = 1_000
_ADDRESS: Final = re.compile(r"(?:\w+://)?(?P<server>\S+:\d+)/(?:bootstrap|-?\d+): (?P<text>.*)")
_FAMILY: Final = re.compile(r"\bipv[46]#(?=\S)")
_STATE: Final = re.compile(r"\s*\(after \d+ms in state \w+\)")
_TOO_LONG: Final = (
    "Invalid response size"  # an error without a code of its own: rdkafka_transport.c
)
_LOG_IN: Final = "see `username`, `password`, `mechanism` and `token`"
# Refusals that another attempt does not change.
_REFUSALS: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001  # names of the library's own errors
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)


class ClientFaults:
    """The errors of a client since it was made, each logged once.

    `on_lost` is called once, in a thread of the library or of `poll`, when no server can be
    reached, the client is at its end, or an answer is too long: the library would ask for it again
    for ever. Thread-safe: guarded by self._lock.
    """

    def __init__(
        self, name: str, on_lost: Callable[[KafkaError], None] = lambda _error: None
    ) -> None:
        self._name, self._on_lost = name, on_lost
        self._lock = Lock()
        self._logged: set[str] = set()
        self.last: KafkaError | None = None  # of one server
        self.lost: KafkaError | None = None  # that ended the client

    def note(self, error: KafkaError) -> None:
        """Take an error of the client (`error_cb`)."""
        is_away = error.code() == KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
        if not is_away:
            self.last = error
        self._say(error.str())
        if self.lost is None and (is_away or error.fatal() or _TOO_LONG in error.str()):
            self.lost = self.last or error
            self._on_lost(self.lost)

    def log(self, _level: int, _form: str, *args: object) -> None:
        """Take a line of the library's log, as a `logging.Logger` does."""
        self._say(" ".join(map(str, args)))

    def _say(self, text: str) -> None:
        state = re.sub(r"\d+", "N", text)
        with self._lock:
            is_new = state not in self._logged and len(self._logged) < 1_000
            self._logged.add(state) if is_new else None
        if is_new:
            log.debug("%s: %s", self._name, text)


def client_options(settings: KafkaSettings, instance: str, faults: ClientFaults) -> dict[str, Any]:
    """Return the options that every client has: servers, encryption, log-in, callbacks.

    Raises:
        NotConnectedError: the file of a secret cannot be read.
    """
    found: dict[str, Any] = {
        "bootstrap.servers": ",".join(each.partition("://")[2] for each in settings.addresses),
        "client.id": settings.client_id.replace("{instance}", instance) or settings.name,
        "socket.connection.setup.timeout.ms": int(settings.connect_timeout * _MS),
        "socket.timeout.ms": max(10, int(settings.answer_timeout * _MS)),
        "socket.keepalive.enable": True,
        "connections.max.idle.ms": int(IDLE * _MS),
        "allow.auto.create.topics": False,
        "topic.metadata.propagation.max.ms": 0,  # the sink itself waits for a topic that it makes
        "receive.message.max.bytes": METADATA,
        "log.connection.close": False,
        "error_cb": faults.note,
        "logger": faults,
    }
    return found | _security(settings)


def _security(settings: KafkaSettings) -> dict[str, Any]:
    tls, has_login = settings.tls, settings.username is not None or settings.token is not None
    found: dict[str, Any] = {
        "security.protocol": ("sasl_" if has_login else "") + ("ssl" if tls else "plaintext")
    }
    if tls is not None:
        found |= _tls(tls)
    if settings.username is not None:
        found["sasl.mechanism"] = settings.mechanism
        found["sasl.username"] = settings.username
        found["sasl.password"] = current(settings.password) or ""
    elif settings.token is not None:
        found["sasl.mechanism"] = "OAUTHBEARER"
        found["oauth_cb"] = lambda _config: (current(settings.token), time() + TOKEN_LIFE)
    return found


def _tls(tls: TlsSettings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ssl.ca.location": tls.ca_file or "probe",
        "ssl.endpoint.identification.algorithm": "https" if tls.verify else "none",
        "enable.ssl.certificate.verification": tls.verify,
    }
    if tls.cert_file is not None:
        found["ssl.certificate.location"] = tls.cert_file
        found["ssl.key.location"] = tls.key_file or tls.cert_file
        found["ssl.key.password"] = current(tls.key_password) or ""
    return found


def producer_options(
    settings: KafkaSettings, instance: str, faults: ClientFaults
) -> dict[str, Any]:
    """Return the options of a sink's client; errors as in `client_options`.

    No message has a time limit: one that is given up could arrive after a later one.
    """
    return client_options(settings, instance, faults) | {
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": settings.compression,
        "message.max.bytes": settings.max_message,
        "batch.size": min(BATCH, settings.max_message),
        "message.timeout.ms": 0,
        "linger.ms": 1,
        "queue.buffering.max.messages": 0,  # the window of the sink counts them
        "queue.buffering.max.kbytes": max(QUEUE, 2 * settings.send_window_bytes) // 1_024,
        "partitioner": "murmur2_random",  # of Java's client: one key, one partition
    }


def consumer_options(
    settings: KafkaSettings, instance: str, faults: ClientFaults
) -> dict[str, Any]:
    """Return the options of a source's client; errors as in `client_options`.

    A server sends a batch whole, however long: one of twice the limit is taken, so that a message
    which is longer than the limit is a dead letter and does not stop the source.
    """
    longest = max(2 * settings.max_message_in, 1_048_576)
    window = max(settings.receive_window_bytes // 4, 65_536)
    return client_options(settings, instance, faults) | {
        "group.id": settings.group_id.replace("{instance}", instance) or settings.name,
        "partition.assignment.strategy": "range",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "session.timeout.ms": int(settings.session_timeout * _MS),
        "heartbeat.interval.ms": max(100, int(settings.session_timeout * _MS / 5)),
        "fetch.message.max.bytes": min(window, 1_048_576),
        "fetch.max.bytes": longest,
        "receive.message.max.bytes": longest + CONTROL,
        "message.max.bytes": min(longest, window),
        "queued.max.messages.kbytes": max(1, window // 1_024),
        "queued.min.messages": min(settings.receive_window, 10_000),
    }


def connect(
    client: Untyped,
    settings: KafkaSettings,
    faults: ClientFaults,
    is_closed: Callable[[], bool] = lambda: False,
) -> Untyped:
    """Wait until a client knows its cluster; return the library's `ClusterMetadata`.

    Another thread ends the wait where it makes `is_closed` true.

    Raises:
        NotConnectedError: no server answers.
        EndpointError: a server refuses the log-in, or TLS does.
    """
    until = monotonic() + settings.connect_timeout
    while True:
        try:
            return client.list_topics(timeout=_STEP)
        except UnicodeDecodeError as error:
            reason = "a server names a topic that is not UTF-8"
            raise NotConnectedError(f"{settings.name}: {_shown(settings)}: {reason}") from error
        except KafkaException as error:
            failure: KafkaError = error.args[0]
        fatal = serve(client, 0)
        found = fatal or faults.last or failure
        if fatal or faults.lost is not None or found.code() in _REFUSALS:
            raise refusal(settings, found)
        if is_closed():
            raise NotConnectedError(f"{settings.name}: was closed while it connected")
        if monotonic() > until:
            if faults.last is not None:
                raise refusal(settings, found)
            silence = f"no answer within {settings.connect_timeout:g} s; is it a server of Kafka?"
            raise NotConnectedError(f"{settings.name}: {_shown(settings)}: {silence}")


def serve(client: Untyped, seconds: float) -> KafkaError | None:
    """Wait for callbacks and make them; return the fatal error that ends the client.

    The library raises such an error here, also around another callback.
    """
    try:
        client.poll(seconds)
    except (KafkaException, SystemError) as error:
        failure = error if isinstance(error, KafkaException) else error.__cause__
        if not isinstance(failure, KafkaException):
            raise
        found: KafkaError = failure.args[0]
        return found
    return None


def refusal(settings: KafkaSettings, error: KafkaError) -> EndpointError:
    """Return the error of a failed connection or request, with the address and advice."""
    code, (address, reason) = error.code(), split_error(settings, error)
    if code in _REFUSALS:
        hint = f"; {_LOG_IN}" if code not in _AUTHORISATION else ""
        return EndpointError(f"{settings.name}: {address}: {reason}{hint}")
    if code in _CONNECTION and "," not in address:
        server = server_of(f"kafka://{address}", PORT, is_encrypted=settings.tls is not None)
        return connect_error(settings, server, OSError(reason), settings.tls)
    return NotConnectedError(f"{settings.name}: {address}: {reason}")


def split_error(settings: KafkaSettings, error: KafkaError) -> tuple[str, str]:
    """Return HOST:PORT and the reason of an error; all servers where it names none."""
    text = _FAMILY.sub("", _STATE.sub("", error.str()))
    text = text.replace("receive.message.max.bytes", "max_message_in")
    parts = _ADDRESS.fullmatch(text)
    return (parts["server"], parts["text"]) if parts else (_shown(settings), text)


_AUTHORISATION: Final = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
_CONNECTION: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._SSL, KafkaError._RESOLVE}  # noqa: SLF001  # as above
)


def _shown(settings: KafkaSettings) -> str:
    return ", ".join(each.partition("://")[2] for each in settings.addresses)


def address_of(metadata: Untyped) -> str:
    """Return HOST:PORT of the server that has told about its cluster."""
    name: str = metadata.orig_broker_name
    return name.rpartition("/")[0].rpartition("://")[2]
