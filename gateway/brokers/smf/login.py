"""Who gets in: user and password, client certificate or token, and a name nobody else has."""

from __future__ import annotations

import hmac

from gateway.brokers.smf.matching import MAX_TOPIC
from gateway.brokers.smf.options import (
    NAME_IN_USE,
    NAME_PARSE_ERROR,
    UNAUTHORIZED,
    VPN_NOT_ALLOWED,
    BrokerOptions,
)
from gateway.brokers.smf.session import Session
from gateway.brokers.smf.vpn import State
from gateway.wire.smf.client import (
    CLIENT_CERTIFICATE,
    OAUTH,
    UPDATE,
    Login,
    Welcome,
    decode_login,
    encode_refusal,
    encode_welcome,
)
from gateway.wire.smf.parameters import OK, Response

_NAME_ROOM = 100  # bytes of a topic that an inbox takes beside the client's name


def log_in(session: Session, frame: bytes, state: State) -> None:
    """Answer a client control message; a client that is refused is disconnected."""
    login = decode_login(frame)
    if login.kind == UPDATE or session.vpn is not None:
        session.outbox.post(encode_refusal(login.kind, OK))
        return
    refusal = state.faults.login or _refuse(session, login, state)
    if refusal is not None:
        session.outbox.post(encode_refusal(login.kind, refusal))
        session.end(f"login refused: {refusal.text}")
        return
    options = state.options
    session.vpn = state.vpns[login.vpn]
    session.name, session.keepalive = login.client_name, login.keepalive
    session.vpn.clients[session.name] = session
    welcome = Welcome(login.client_name, login.vpn, options.router, options.max_message)
    session.outbox.post(encode_welcome(login.kind, welcome, OK))


def _refuse(session: Session, login: Login, state: State) -> Response | None:
    if not _is_known(session, login, state.options):
        return UNAUTHORIZED
    vpn = state.vpns.get(login.vpn)
    if vpn is None:
        return VPN_NOT_ALLOWED
    if not 0 < len(login.client_name.encode()) <= MAX_TOPIC - _NAME_ROOM:
        return NAME_PARSE_ERROR
    if login.client_name in vpn.clients:
        return NAME_IN_USE
    return None


def _is_known(session: Session, login: Login, options: BrokerOptions) -> bool:
    if login.scheme == OAUTH:
        token = (login.token or "").encode()
        return any(hmac.compare_digest(token, known.encode()) for known in options.tokens)
    if login.scheme == CLIENT_CERTIFICATE:
        return bool(session.transport.get_extra_info("peercert"))
    if options.users is None:
        return True
    expected = options.users.get(login.user)
    given = login.password or ""
    return expected is not None and hmac.compare_digest(expected.encode(), given.encode())
