"""The log-in at a server of AMQP 1.0: SASL, and an `open` of each side, over a connected socket."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, NamedTuple
from urllib.parse import unquote

from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import server_of, split_url
from gateway.errors import EndpointError, NotConnectedError, WireError, first_line
from gateway.setting import current
from gateway.wire.amqp import frames
from gateway.wire.amqp.frames import AmqpDecoder, Frame, encode_frame, error_text
from gateway.wire.amqp.session import FRAME
from gateway.wire.amqp.values import binary, map_of, string, symbol, uint, ushort

LOG_IN_FRAME: Final = 8_192  # bytes that are read at once
MECHANISMS: Final = {"password": "PLAIN", "certificate": "EXTERNAL", "anonymous": "ANONYMOUS"}
NOT_FOUND: Final = "amqp:not-found"
UNAUTHORISED: Final = "amqp:unauthorized-access"
REFUSALS: Final = frozenset({UNAUTHORISED, "amqp:not-allowed", "amqp:not-implemented"})
MAX_SHOWN: Final = 1_000  # characters of a server's text; RabbitMQ names a user and a topic in it
_TEMPORARY: Final = 4  # outcome of a log-in: the server cannot say it now
_LEAST_VERSION: Final = 4  # of RabbitMQ


class ServerTerms(NamedTuple):
    """The terms of a server, from its `open`, and the frames that came behind it."""

    decoder: AmqpDecoder
    max_frame: int  # bytes of the longest frame that it takes
    beat: float  # seconds, in which it wants a frame
    found: list[Frame]


@dataclass(slots=True)
class _Frames:
    """The frames of a server that logs us in. Mutable: those that were not taken."""

    raw: socket.socket
    until: float  # monotonic seconds
    decoder: AmqpDecoder = field(default_factory=lambda: AmqpDecoder(FRAME, frames.SASL))
    pending: deque[Frame] = field(default_factory=deque)
    heard: bool = False  # a frame has come: the server speaks AMQP

    def take(self) -> frames.Performative:
        """Return the next performative. Raises OSError: none comes in time."""
        while not self.pending:
            left = self.until - monotonic()
            if left <= 0:
                raise TimeoutError("no answer to the log-in in time")
            self.raw.settimeout(left)
            data = self.raw.recv(LOG_IN_FRAME)
            if not data:
                raise ConnectionError("the server ended the connection")
            self.pending.extend(self.decoder.feed(data))
            self.heard = self.heard or bool(self.pending)
        return self.pending.popleft().performative


def log_in(
    settings: AmqpSettings, raw: socket.socket, url: str, label: str, until: float
) -> ServerTerms:
    """Log in at the address `url` before the time `until`; `label` begins the text of errors.

    Raises:
        OSError: the server gives no sign of AMQP.
        WireError: it breaks the rules.
        NotConnectedError: it ends the connection, or refuses for now.
        EndpointError: it refuses.
    """
    server = _Frames(raw, until)
    try:
        raw.sendall(frames.SASL_HEADER)
        raw.sendall(_answer_mechanisms(settings, server.take(), url, label))
        outcome = server.take()
        if not isinstance(outcome, frames.LogInOutcome) or outcome.code:
            raise _refused_log_in(settings, outcome, label)
        server.pending.extend(server.decoder.begin())
        raw.sendall(frames.HEADER + _open_frame(settings, url))
        return _terms(settings, server.take(), server, label)
    except OSError as error:
        if not server.heard:
            raise
        raise NotConnectedError(f"{label}: {first_line(error)}") from error


def _answer_mechanisms(
    settings: AmqpSettings, offered: frames.Performative, url: str, label: str
) -> bytes:
    mechanism = MECHANISMS[settings.login]
    found = offered.mechanisms if isinstance(offered, frames.Mechanisms) else None
    names = found if isinstance(found, list) else [found]
    if mechanism not in names:
        listed = ", ".join(map(str, names))
        reason = f"the server offers {listed:.200}, and not {mechanism}; change `login`"
        raise EndpointError(f"{label}: {reason}")
    answer = settings.container_id.encode()
    if mechanism == "PLAIN":
        own = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
        user, _, password = map(unquote, own.partition(":"))
        user = settings.username or user
        answer = f"\0{user}\0{current(settings.password) or password}".encode()
    elif mechanism == "EXTERNAL":
        answer = b""
    return encode_frame(frames.INIT, [symbol(mechanism), binary(answer)], kind=frames.SASL)


def _refused_log_in(
    settings: AmqpSettings, outcome: frames.Performative, label: str
) -> EndpointError:
    if not isinstance(outcome, frames.LogInOutcome):
        return EndpointError(f"{label}: the server asks for more than {settings.login!r}")
    reason = f"the log-in is refused (SASL, code {outcome.code}); check the user and `login`"
    text = f"{label}: {reason}"
    return NotConnectedError(text) if outcome.code == _TEMPORARY else EndpointError(text)


def _open_frame(settings: AmqpSettings, url: str) -> bytes:
    host = f"vhost:{split_url(url)[2] or '/'}"
    if not settings.product.has_exchanges:
        host = server_of(url, 0, is_encrypted=False).host
    known = map_of({symbol("product"): string("gateway")})
    container = settings.container_id or f"gateway-{settings.name}"
    return encode_frame(
        frames.OPEN,
        [
            string(container),
            string(host),
            uint(FRAME),
            ushort(0),
            uint(settings.heartbeat * 500),
            None,
            None,
            None,
            None,
            known,
        ],
    )


def _terms(
    settings: AmqpSettings, opened: frames.Performative, server: _Frames, label: str
) -> ServerTerms:
    """Return the terms of an `open`; raises as `log_in` does."""
    if isinstance(opened, frames.Close):
        raise refusal(label, *error_text(opened.error))
    if not isinstance(opened, frames.Open):
        raise WireError("amqp: the server answered no `open`")
    told = opened.properties or {}
    version = str(told.get("version", "")).partition(".")[0]
    is_old = told.get("product") == "RabbitMQ" and version.isdecimal()
    if is_old and int(version) < _LEAST_VERSION:
        reason = "the plug-in of RabbitMQ 3 accepts messages that no queue takes"
        raise EndpointError(f"{label}: {reason}; use the kind `rabbitmq`")
    beat = (opened.idle_time_out or 0) / 2_000 or settings.heartbeat
    max_frame = max(opened.max_frame_size or FRAME, frames.MIN_FRAME)
    return ServerTerms(server.decoder, max_frame, beat, [*server.pending])


def shown(condition: str, text: str) -> str:
    """Return the error of a peer as a text, without what a hostile one adds."""
    condition, text = condition[:MAX_SHOWN], text[:MAX_SHOWN]
    return f"{condition}: {text}" if condition and text else condition or text


def refusal(label: str, condition: str, text: str) -> EndpointError:
    """Return the error of a request that the server refuses: now, or for good."""
    kind = EndpointError if condition in REFUSALS else NotConnectedError
    return kind(f"{label}: {shown(condition, text) or 'the server refuses'}")
