"""Where traces go: a finding for an address that nothing can be sent to."""

from __future__ import annotations

from urllib.parse import urlsplit

from gateway.config.process import TracingRef
from gateway.config.reader import Reader

_At = tuple[str | int, ...]


def check_tracing(ref: TracingRef, reader: Reader, at: _At) -> None:
    """Report what is wrong with the collector's address, and with how it is spoken to."""
    hint = "write http://HOST:4318 or https://HOST:4318"
    try:
        url = urlsplit(ref.otlp)
        known = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # a port that is no number, a broken IPv6 address
        reader.report((*at, "otlp"), "bad-url", "the collector's address is no URL", hint)
        return
    if not known:
        reader.report((*at, "otlp"), "bad-url", "the collector's address is no URL", hint)
    elif url.username is not None or url.password is not None:
        reason = "the collector's address holds a name or a password"
        reader.report((*at, "otlp"), "bad-url", reason, "set `token`")
    if ref.ca_file is not None and url.scheme == "http":
        reason = "`ca_file` without https: nothing is encrypted"
        reader.report((*at, "ca_file"), "no-certificate", reason, "write https://")
    if ref.token is not None and not (ref.token.isascii() and ref.token.isprintable()):
        reason = "the token has characters that no header carries as they are"
        reader.report((*at, "token"), "bad-token", reason, "use letters, digits, '-', '_' and '.'")
