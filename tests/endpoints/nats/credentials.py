"""NKeys, JWTs and a credentials file: what `nsc` would write, for a server in a test."""

from __future__ import annotations

import json
import os
from base64 import b32encode, urlsafe_b64encode
from binascii import crc_hqx
from hashlib import sha512
from pathlib import Path

_SEED, _KINDS = 18, {"OPERATOR": 14, "ACCOUNT": 0, "USER": 20}
_UNLIMITED = {"subs": -1, "data": -1, "payload": -1}
_ACCOUNT_LIMITS = _UNLIMITED | {
    "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "wildcards": True,
    "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
}  # fmt: skip


class Key:
    """A key pair of the kind `OPERATOR`, `ACCOUNT` or `USER`."""

    def __init__(self, kind: str) -> None:
        from nacl.signing import SigningKey  # noqa: PLC0415  # the tests are skipped without it

        prefix, raw = _KINDS[kind] << 3, os.urandom(32)
        self._key = SigningKey(raw)
        self.seed = _checked(bytes([_SEED << 3 | prefix >> 5, (prefix & 31) << 3]) + raw)
        self.public = _checked(bytes([prefix]) + bytes(self._key.verify_key))

    def claim(self, subject: Key, kind: str, **facts: object) -> str:
        """Return a JWT about `subject`, signed by this key."""
        claims = {
            "iat": 1_700_000_000, "iss": self.public, "name": kind, "sub": subject.public,
            "nats": {"type": kind, "version": 2, **facts},
        }  # fmt: skip
        number = b32encode(sha512(json.dumps(claims).encode()).digest()[:32]).decode().rstrip("=")
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        text = f"{_packed(head)}.{_packed(claims | {'jti': number})}"
        return f"{text}.{_base64(self._key.sign(text.encode()).signature)}"


def server_lines(operator: Key, account: Key) -> list[str]:
    """Return the lines of a server whose only user account is `account`."""
    system = Key("ACCOUNT")
    accounts = {
        system.public: operator.claim(
            system, "account", limits=_ACCOUNT_LIMITS | {"disk_storage": 0, "mem_storage": 0}
        ),
        account.public: operator.claim(account, "account", limits=_ACCOUNT_LIMITS),
    }
    preload = ", ".join(f"{key}: {jwt}" for key, jwt in accounts.items())
    return [
        f"operator: {operator.claim(operator, 'operator', system_account=system.public)}",
        f"system_account: {system.public}",
        "resolver: MEMORY",
        f"resolver_preload: {{{preload}}}",
    ]


def write_credentials(file: Path, account: Key, user: Key) -> None:
    jwt = account.claim(user, "user", **_UNLIMITED)
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )


def _checked(raw: bytes) -> str:
    return b32encode(raw + crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


def _packed(value: object) -> str:
    return _base64(json.dumps(value).encode())


def _base64(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")
