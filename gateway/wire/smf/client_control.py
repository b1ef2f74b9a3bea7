"""Client control messages: a login and its answer."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gateway.errors import WireError
from gateway.wire.smf import parameters as kinds
from gateway.wire.smf.frames import Protocol, encode_frame, split_frame
from gateway.wire.smf.parameters import U32, read_extended, read_parameters
from gateway.wire.smf.responses import SmfResponse, encode_response

LOGIN: Final = 0
UPDATE: Final = 1

CLIENT_CERTIFICATE: Final = 0x01  # authentication schemes; basic has none
OAUTH: Final = 0x0A

_SOFTWARE, _BUILD_DATE, _PLATFORM = 0x00, 0x01, 0x02
_NAME, _VPN, _INBOX, _CAPABILITIES = 0x05, 0x06, 0x08, 0x09
_VIRTUAL_ROUTER, _ROUTER, _SCHEME, _KEEPALIVE = 0x0A, 0x0C, 0x11, 0x18
_ACCESS_TOKEN, _ID_TOKEN = 0x31, 0x30
_HEAD_SIZE = 6
_ENTRY_HEAD_SIZE = 5
_CAPABILITY_BITS = 27


class Capability(IntEnum):
    """A bit of the broker's capabilities, counted from the highest."""

    GUARANTEED_CONSUME = 2
    TEMPORARY_ENDPOINT = 3
    GUARANTEED_PUBLISH = 4
    ENDPOINT_MANAGEMENT = 6
    QUEUE_SUBSCRIPTIONS = 9
    ACTIVE_FLOW = 15
    SHARED_SUBSCRIPTIONS = 23
    APP_ACK_FAILED = 25


@dataclass(frozen=True, slots=True)
class Login:
    """The login of a client; its `repr` contains neither `password` nor `token`."""

    kind: int  # LOGIN or UPDATE
    user: str
    password: str | None
    vpn: str
    client_name: str
    scheme: int = 0
    token: str | None = None
    keepalive: int = 0  # seconds; 0 when the client names none

    def __repr__(self) -> str:
        return f"Login({self.user!r}, {self.vpn!r}, {self.client_name!r})"


@dataclass(frozen=True, slots=True)
class LoginReply:
    """The broker's properties in the answer to a login."""

    client_name: str
    vpn: str
    router: str
    max_message: int
    software: str = "gateway"

    @property
    def inbox(self) -> str:
        """The topic for replies to this client, which subscribes to all topics below it."""
        return f"#P2P/v:{self.router}/{self.client_name}"


def decode_login(frame: bytes) -> Login:
    """Decode the login of a client.

    Raises:
        WireError: this is not a client control message of version 1, or a number is too large.
    """
    parameters, body = split_frame(frame)
    kind, fields = _read_body(body)
    found: dict[int, bytes] = {}
    tokens: dict[int, bytes] = {}
    for each in read_parameters(parameters):
        found[each.kind] = each.value
        if each.kind == kinds.EXTENDED:  # a client may send its extended elements apart
            tokens |= read_extended(each.value)
    token = tokens.get(_ACCESS_TOKEN) or tokens.get(_ID_TOKEN)
    return Login(
        kind=kind,
        user=_from_base64(found.get(kinds.USER, b"")),
        password=_from_base64(found[kinds.PASSWORD]) if kinds.PASSWORD in found else None,
        vpn=_text(fields.get(_VPN, b"")),
        client_name=_text(fields.get(_NAME, b"")),
        scheme=_number(fields, _SCHEME),
        token=token.rstrip(b"\0").decode("utf-8", "replace") if token else None,
        keepalive=_number(fields, _KEEPALIVE),
    )


def encode_login_reply(kind: int, reply: LoginReply, response: SmfResponse) -> bytes:
    """Encode the answer to an accepted login."""
    fields = (
        (_SOFTWARE, _c_string(reply.software)),
        (_BUILD_DATE, _c_string("-")),
        (_PLATFORM, _c_string("gateway broker smf")),
        (_NAME, _c_string(reply.client_name)),
        (_VPN, _c_string(reply.vpn)),
        (_INBOX, _c_string(reply.inbox)),
        (_CAPABILITIES, _capabilities(reply.max_message)),
        (_VIRTUAL_ROUTER, _c_string(f"v:{reply.router}")),
        (_ROUTER, _c_string(reply.router)),
    )
    return _encode(kind, _entries(*fields), response)


def encode_login_refusal(kind: int, response: SmfResponse) -> bytes:
    """Encode the answer to a refused login; the broker then closes the connection."""
    return _encode(kind, b"", response)


def _encode(kind: int, entries: bytes, response: SmfResponse) -> bytes:
    body = bytes((1, kind)) + U32.pack(_HEAD_SIZE + len(entries)) + entries
    return encode_frame(Protocol.CLIENT_CONTROL, encode_response(response), body)


def _read_body(body: bytes) -> tuple[int, dict[int, bytes]]:
    if len(body) < _HEAD_SIZE or body[0] & 7 != 1:
        raise WireError("smf: not a client control message of version 1")
    fields: dict[int, bytes] = {}
    position = _HEAD_SIZE
    while position + _ENTRY_HEAD_SIZE <= len(body):
        size: int = U32.unpack_from(body, position + 1)[0]
        if size < _ENTRY_HEAD_SIZE or position + size > len(body):
            raise WireError(f"smf: client control field 0x{body[position]:02x} ends outside")
        fields[body[position] & 0x7F] = body[position + _ENTRY_HEAD_SIZE : position + size]
        position += size
    return body[1], fields


def _capabilities(max_message: int) -> bytes:
    bits = sum(1 << (31 - number) for number in Capability)
    size = U32.pack(max_message)
    items = _entries((0, U32.pack(1000)), (1, b"\0"), (2, size), (3, size))
    return bytes((_CAPABILITY_BITS,)) + U32.pack(bits) + items


def _entries(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(
        bytes((kind,)) + U32.pack(_ENTRY_HEAD_SIZE + len(value)) + value for kind, value in fields
    )


def _c_string(text: str) -> bytes:
    return text.encode() + b"\0"


def _number(fields: dict[int, bytes], number: int) -> int:
    value = fields.get(number, b"")
    if len(value) > U32.size:
        raise WireError(f"smf: client control field 0x{number:02x} has {len(value)} bytes")
    return int.from_bytes(value, "big")


def _text(value: bytes) -> str:
    return value.partition(b"\0")[0].decode("utf-8", "replace")


def _from_base64(value: bytes) -> str:
    try:
        return b64decode(value, validate=True).decode("utf-8", "replace")
    except Base64Error as error:
        raise WireError("smf: a user name or password is not Base64") from error
