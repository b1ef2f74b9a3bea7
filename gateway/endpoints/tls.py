"""TLS of client connections: the context from the settings, and a hint for the wrong port."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from gateway.endpoints.settings.base import TlsSettings
from gateway.errors import EndpointError

PROBE_TIMEOUT: Final = 2.0  # seconds
_ENCRYPTED_SCHEMES: Final = frozenset({"tcps", "ssl", "mqtts", "nio+ssl", "amqps", "tls"})


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


def encryption_hint(addresses: Iterable[str]) -> str:
    """Return the end of an error text when a port does not speak what its address says.

    For a connection that broke before the broker's first answer. Each address is asked whether it
    answers a TLS handshake; the hint is empty where that fits.
    """
    for address in addresses:
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if host is None or port is None or (found := _answers_tls(host, port)) is None:
            continue
        if found and parts.scheme not in _ENCRYPTED_SCHEMES:
            return f"; port {port} expects TLS: configure TLS, or use the port without TLS"
        if not found and parts.scheme in _ENCRYPTED_SCHEMES:
            return f"; port {port} does not speak TLS: use the broker's TLS port, or remove TLS"
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
