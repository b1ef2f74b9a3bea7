"""TLS of client connections: the context from the settings, and the errors of a failed one.

A driver tells of a refused certificate in its own way, or not at all. So a connection that fails
before its log-in is tried once more with only a handshake, which says whether TLS is the cause.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from hashlib import sha256
from time import monotonic
from typing import Final

from gateway.endpoints.proxy import connect_through
from gateway.endpoints.settings.base import EndpointSettings, Server, TlsSettings
from gateway.endpoints.settings.proxy import ProxySettings
from gateway.errors import EndpointError, NotConnectedError, first_line
from gateway.setting import current
from gateway.untyped import Untyped

PROBE_TIMEOUT: Final = 2.0  # seconds
REFUSAL_TIMEOUT: Final = 0.5  # seconds after a handshake for a refusal of the certificate (TLS 1.3)
MAX_GREETING: Final = 65_536  # bytes
ENDED: Final = "the server ended the connection at the handshake"
OTHER_HOST: Final = frozenset({62, 64})  # of OpenSSL: a name, an address does not fit
EXPECTS_TLS: Final = "expects TLS: configure TLS, or use the port without TLS"
WITHOUT_TLS: Final = "does not speak TLS: use the broker's TLS port, or remove TLS"


def client_context(endpoint: str, tls: TlsSettings) -> ssl.SSLContext:
    """Return a context for these settings; `endpoint` is its name, for the error.

    Raises:
        EndpointError: a file is missing, or cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2  # not each build of Python has this least
        if tls.cert_file is not None:
            # without a password OpenSSL would ask for one on the terminal
            context.load_cert_chain(tls.cert_file, tls.key_file, current(tls.key_password) or "")
    except (OSError, ssl.SSLError) as error:
        files = [file for file in (tls.ca_file, tls.cert_file, tls.key_file) if file]
        raise EndpointError(
            f"{endpoint}: cannot use {', '.join(files)}: {error}; check the files"
        ) from error
    if alpn := getattr(tls, "alpn", ()):
        context.set_alpn_protocols(alpn)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def encryption_hint(settings: EndpointSettings) -> str:
    """Return the end of an error text when a port does not speak what its address says.

    For a connection that broke before the broker's first answer. Each server is asked whether it
    answers a TLS handshake; the hint is empty where that fits, and where a proxy is between.
    """
    if getattr(settings, "proxy", None) is not None:
        return ""
    for host, port, is_encrypted in settings.servers():
        answers_tls = None if port is None else _answers_tls(host, port)
        if answers_tls is not None and answers_tls is not is_encrypted:
            return f"; port {port} {EXPECTS_TLS if answers_tls else WITHOUT_TLS}"
    return ""


def _answers_tls(host: str, port: int) -> bool | None:
    """Return whether a port answers a TLS handshake; None when it cannot be reached."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        plain = socket.create_connection((host, port), PROBE_TIMEOUT)
    except (OSError, UnicodeError):  # a host with an empty label, as in `a..b`, has no encoding
        return None
    with plain:
        try:
            context.wrap_socket(plain, server_hostname=host).close()
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")  # an answer of TLS, though a refusal
        except OSError:
            return False
    return True


def connect_error(
    settings: EndpointSettings, server: Server, error: Exception, tls: TlsSettings | None
) -> EndpointError:
    """Return the error of a connection to `server` that failed before its first answer.

    It names the address, the cause and a remedy. A refused certificate is permanent.
    """
    label = f"{settings.name}: {server.host}:{server.port}"
    reason = first_line(error)
    if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError):
        reason = os.strerror(error.errno)
    if not settings.greets and (hint := encryption_hint(settings)):
        return NotConnectedError(f"{label}: {reason}{hint}")
    refused = handshake_error(settings, server, tls, error) if server.is_encrypted else None
    return refused or NotConnectedError(f"{label}: {reason}")


def handshake_error(
    settings: EndpointSettings, server: Server, tls: TlsSettings | None, error: Exception
) -> EndpointError | None:
    """Return why a TLS handshake fails, by `error` or by another one.

    None where it succeeds, or nobody answers.
    """
    label = f"{settings.name}: {server.host}:{server.port}"
    fault = _handshake_fault(settings, server, error, tls)
    if isinstance(fault, ssl.SSLEOFError | ConnectionResetError):  # it may be an accident
        return NotConnectedError(f"{label}: TLS: {ENDED}{certificate_hint(fault, tls)}")
    if fault is not None:
        return EndpointError(f"{label}: TLS: {first_line(fault)}{certificate_hint(fault, tls)}")
    return None


def certificate_hint(error: Exception, tls: TlsSettings | None) -> str:
    """Return the end of the text of a handshake that failed: the setting to look at."""
    tls, alert = tls or TlsSettings(), str(getattr(error, "reason", None) or "")
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in OTHER_HOST:
            return "; the certificate is for another host: see `tls.server_hostname`"
        return authority_hint(tls)
    if "VERSION" in alert or "PROTOCOL" in alert:
        return "; the server speaks another version of TLS"
    if tls.cert_file is not None:
        return f"; the server may refuse our certificate, `tls.cert_file`: {tls.cert_file}"
    return "; the server may ask for a client certificate: write `tls.cert_file` and `key_file`"


def authority_hint(tls: TlsSettings | None) -> str:
    """Return the end of the text where the authority of a server's certificate is not trusted."""
    file = (tls or TlsSettings()).ca_file or "absent, so that the system's authorities count"
    return f"; see `tls.ca_file`, which is {file}"


def _handshake_fault(
    settings: EndpointSettings, server: Server, error: Exception, tls: TlsSettings | None
) -> Exception | None:
    """Return why a TLS handshake fails; None where it succeeds, or nobody answers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error
    try:
        with _handshake(settings, server, tls) as encrypted:
            encrypted.settimeout(REFUSAL_TIMEOUT)
            encrypted.recv(1)
    except (ssl.SSLError, ConnectionResetError) as failure:
        return failure
    except (OSError, UnicodeError):  # it waits for the log-in, or is away
        return None
    return None


def describe_certificate(settings: EndpointSettings, server: Server) -> str:
    """Return version of TLS and certificate of `server`, by a handshake of its own.

    Empty for a server without TLS, and for a kind whose library has settings of its own for it.
    """
    tls = getattr(settings, "tls", None)
    if not isinstance(tls, TlsSettings | None) or not (server.is_encrypted or tls):
        return ""
    try:
        with _handshake(settings, server, tls) as encrypted:
            version, found = encrypted.version(), encrypted.getpeercert() or {}
            whole = encrypted.getpeercert(binary_form=True) or b""
            version = f"{version}, ALPN {alpn}" if (alpn := _agreed(encrypted)) else version
    except (OSError, UnicodeError, EndpointError):
        return ""
    if not found:
        return f"{version}, certificate not verified, SHA-256 {sha256(whole).hexdigest()}"
    subject, issuer = (_shown(found.get(each, ())) for each in ("subject", "issuer"))
    return f"{version}, certificate {subject}, by {issuer}, until {found.get('notAfter')}"


def _handshake(
    settings: EndpointSettings, server: Server, tls: TlsSettings | None
) -> ssl.SSLSocket:
    """Return a connection that only spoke TLS. Raises OSError, or UnicodeError for a bad host."""
    tls = tls or TlsSettings()
    context, host = client_context(settings.name, tls), tls.server_hostname or server.host
    plain = _connected(settings, server)
    try:
        if settings.greets:
            _skip_line(plain)
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _connected(settings: EndpointSettings, server: Server) -> socket.socket:
    proxy, port = getattr(settings, "proxy", None), server.port or 0
    if not isinstance(proxy, ProxySettings):
        return socket.create_connection((server.host, port), PROBE_TIMEOUT)
    deadline = monotonic() + PROBE_TIMEOUT
    plain = connect_through(settings.name, proxy, server.host, port, deadline)
    plain.settimeout(PROBE_TIMEOUT)
    return plain


def _agreed(encrypted: ssl.SSLSocket) -> str:
    """Return the protocol that both sides have agreed on (ALPN); empty without one."""
    return encrypted.selected_alpn_protocol() or ""


def _shown(name: Untyped) -> str:
    return ", ".join(f"{key}={value}" for part in name for key, value in part)


def _skip_line(plain: socket.socket) -> None:
    """Read the line that a server sends before it turns to TLS."""
    for _ in range(MAX_GREETING):
        if plain.recv(1) in {b"\n", b""}:
            return


def joined(failures: Sequence[EndpointError]) -> EndpointError:
    """Return one error of several addresses; a permanent one only where none may answer later."""
    texts = "; ".join(dict.fromkeys(map(str, failures)))
    later = any(each.retryable for each in failures)
    return NotConnectedError(texts) if later else EndpointError(texts)
