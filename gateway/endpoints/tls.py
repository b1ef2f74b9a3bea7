"""The TLS context of a client connection, from the settings of an endpoint."""

from __future__ import annotations

import ssl

from gateway.endpoints.settings.base import TlsSettings
from gateway.errors import EndpointError


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
