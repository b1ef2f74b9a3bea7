"""TLS of client connections: the context from the settings, and a hint for the wrong port."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from gateway.endpoints.settings.base import EndpointSettings, TlsSettings
from gateway.errors import EndpointError

PROBE_TIMEOUT: Final = 2.0  # seconds
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
            context.load_cert_chain(tls.cert_file, tls.key_file, tls.key_password or "")
    except (OSError, ssl.SSLError) as error:
        files = [file for file in (tls.ca_file, tls.cert_file, tls.key_file) if file]
        raise EndpointError(
            f"{endpoint}: cannot use {', '.join(files)}: {error}; check the files"
        ) from error
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def encryption_hint(settings: EndpointSettings) -> str:
    """Return the end of an error text when a port does not speak what its address says.

    For a connection that broke before the broker's first answer. Each server is asked whether it
    answers a TLS handshake; the hint is empty where that fits.
    """
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
