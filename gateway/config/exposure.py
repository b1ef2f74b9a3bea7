"""Who may reach the page: a finding for each way in that is open to people it should not be."""

from __future__ import annotations

import ipaddress
from typing import Final

from gateway.config.process import WebRef
from gateway.config.reader import Reader

SHORTEST: Final = 16  # characters of a token; one of 16 random ones is not found by trying
_At = tuple[str | int, ...]


def check_web(ref: WebRef, reader: Reader, at: _At) -> None:
    """Report what makes the page of `ref` unsafe, or impossible to serve."""
    _check_address(ref, reader, at)
    _check_token(ref, reader, at)
    _check_files(ref, reader, at)


def is_loopback(address: str) -> bool:
    """Whether only this machine, or this pod, reaches `address`."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _check_address(ref: WebRef, reader: Reader, at: _At) -> None:
    if is_loopback(ref.address) or ref.token is not None or ref.client_ca_file is not None:
        return
    reason = f"{ref.address!r} can be reached from elsewhere, and everyone may ask"
    hint = "set `token` or `client_ca_file`, or listen at 127.0.0.1"
    reader.report((*at, "address"), "open-page", reason, hint)


def _check_token(ref: WebRef, reader: Reader, at: _At) -> None:
    token = ref.token
    if token is None:
        return
    if len(token) < SHORTEST:
        reason = f"the token has {len(token)} characters, fewer than {SHORTEST}"
        hint = "make one with `openssl rand -hex 32`"
        reader.report((*at, "token"), "weak-token", reason, hint)
    elif not (token.isascii() and token.isprintable()) or " " in token:
        reason = "the token has characters that no header carries as they are"
        reader.report((*at, "token"), "bad-token", reason, "use letters, digits, '-', '_' and '.'")


def _check_files(ref: WebRef, reader: Reader, at: _At) -> None:
    for key in ("key_file", "client_ca_file"):
        if getattr(ref, key) is not None and ref.cert_file is None:
            reason = f"{key!r} without `cert_file`: nothing is encrypted"
            reader.report((*at, key), "no-certificate", reason, "set `cert_file`")
