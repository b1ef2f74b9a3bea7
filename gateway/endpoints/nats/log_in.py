"""Log-ins by key: NKeys (Ed25519), and credentials files with a JWT and its seed.

The form of a seed is that of the NATS documentation, "NKeys": base32 of two bytes with the kind, 32
bytes of the seed, and a CRC-16 (XMODEM), the lower byte first.
"""

from __future__ import annotations

import re
from base64 import b32decode, b32encode, b64encode
from binascii import crc_hqx
from pathlib import Path
from typing import Any, Final

from nacl.signing import SigningKey

from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import EndpointError

_USER: Final = 20 << 3  # the first byte of a public key, shown as U
_SEED_OF_USER: Final = ((18 << 3) | (_USER >> 5), (_USER & 31) << 3)  # shown as SU
_SEED_BYTES: Final = 36
_PART: Final = "-----BEGIN {0}-----\\s+(\\S+)\\s+-+END {0}-----"


def key_options(settings: NatsSettings) -> dict[str, Any]:
    """Return the library's options for a log-in by key; empty without one.

    Raises:
        EndpointError: a file is absent, or has no key of a user.
    """
    has_jwt = settings.credentials_file is not None
    file = settings.credentials_file if has_jwt else settings.nkey_file
    if file is None:
        return {}
    text = _read(settings.name, file)
    jwt: str | None = None
    if has_jwt:
        jwt, text = (_part(text, each) for each in ("NATS USER JWT", "USER NKEY SEED"))
    key = _key(text.strip())
    if key is None or jwt == "":
        raise EndpointError(f"{settings.name}: {file}: it has no key of a user; check the file")

    def sign(nonce: str) -> bytes:
        return b64encode(key.sign(nonce.encode()).signature)

    own: dict[str, Any] = {"user_jwt_cb": jwt.encode} if jwt else {"public_nkey": public_name(key)}
    return own | {"signature_cb": sign}


def public_name(key: SigningKey) -> str:
    """Return the public key as NATS shows it."""
    raw = bytes([_USER]) + bytes(key.verify_key)
    return b32encode(raw + crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


def _key(seed: str) -> SigningKey | None:
    try:
        raw = b32decode(seed + "=" * (-len(seed) % 8))
    except ValueError:
        return None
    whole = len(raw) == _SEED_BYTES and crc_hqx(raw[:-2], 0) == int.from_bytes(raw[-2:], "little")
    return SigningKey(raw[2:-2]) if whole and tuple(raw[:2]) == _SEED_OF_USER else None


def _part(text: str, name: str) -> str:
    found = re.search(_PART.format(name), text)
    return found.group(1) if found else ""


def _read(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise EndpointError(f"{name}: {file}: {reason}; check the file") from error
