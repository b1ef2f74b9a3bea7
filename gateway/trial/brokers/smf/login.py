"""Login of a client: password, client certificate or token, and a unique client name."""

from __future__ import annotations

import hmac
import logging

from gateway.trial.brokers.smf import responses
from gateway.trial.brokers.smf.client_session import ClientSession
from gateway.trial.brokers.smf.options import BrokerOptions
from gateway.trial.brokers.smf.subscription_table import MAX_TOPIC
from gateway.trial.brokers.smf.vpn import BrokerState
from gateway.wire.smf.client_control import (
    CLIENT_CERTIFICATE,
    OAUTH,
    UPDATE,
    Login,
    LoginReply,
    decode_login,
    encode_login_refusal,
    encode_login_reply,
)
from gateway.wire.smf.responses import OK, SmfResponse

log = logging.getLogger(__name__)

_INBOX_OVERHEAD = 100  # bytes of an inbox topic beside the client's name


def log_in(session: ClientSession, frame: bytes, state: BrokerState) -> None:
    """Answer a client control message; disconnect a refused client."""
    login = decode_login(frame)
    if login.kind == UPDATE or session.vpn is not None:
        session.output.post(encode_login_refusal(login.kind, OK))
        return
    refusal = state.faults.login or _refuse(session, login, state)
    if refusal is not None:
        session.output.post(encode_login_refusal(login.kind, refusal))
        who = f"client {login.client_name!r}, user {login.user!r}, VPN {login.vpn!r}"
        session.end(f"login refused to {who}: {refusal.text}")
        return
    options = state.options
    session.vpn = state.vpns[login.vpn]
    session.name, session.keepalive = login.client_name, login.keepalive
    session.vpn.clients[session.name] = session
    reply = LoginReply(login.client_name, login.vpn, options.router, options.max_message)
    session.output.post(encode_login_reply(login.kind, reply, OK))
    log.info("smf broker: %s logged in, user %r, VPN %r", session.name, login.user, login.vpn)


def _refuse(session: ClientSession, login: Login, state: BrokerState) -> SmfResponse | None:
    if not _is_authentic(session, login, state.options):
        return responses.UNAUTHORIZED
    vpn = state.vpns.get(login.vpn)
    if vpn is None:
        return responses.VPN_NOT_ALLOWED
    if not 0 < len(login.client_name.encode()) <= MAX_TOPIC - _INBOX_OVERHEAD:
        return responses.NAME_PARSE_ERROR
    return responses.NAME_IN_USE if login.client_name in vpn.clients else None


def _is_authentic(session: ClientSession, login: Login, options: BrokerOptions) -> bool:
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
