"""What a broker's answer means for us: for good, for now, or for one message only.

MQTT 3.1.1, 3.2.2.3 and MQTT 5.0, 2.4.
"""

from __future__ import annotations

from gateway.errors import EndpointError, GatewayError, NotConnectedError
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected

BAD_LOGIN = "bad user name or password; check the credentials"
NOT_ALLOWED = "not authorised; check the credentials and the broker's access rules"

CONNACK_3 = {
    1: (True, "it does not speak MQTT 3.1.1; try version 5"),
    2: (True, "it does not take this client id; choose another"),
    3: (False, "it is not available"),
    4: (True, BAD_LOGIN),
    5: (True, NOT_ALLOWED),
}
CONNACK_5 = {
    0x01: (True, "it does not speak MQTT 5.0; try version 3.1.1"),
    0x81: (True, "it calls our CONNECT malformed"),
    0x82: (True, "it calls our CONNECT a protocol error"),
    0x84: (True, "it does not speak MQTT 5.0; try version 3.1.1"),
    0x85: (True, "it does not take this client id; choose another"),
    0x86: (True, BAD_LOGIN),
    0x87: (True, NOT_ALLOWED),
    0x8A: (True, "it has banned this client"),
    0x8C: (True, "bad authentication method"),
    0x95: (True, "our CONNECT is too large for it"),
    0x9D: (True, "it has moved; ask for its new address"),
}
TAKEN_OVER = 0x8E
FOR_GOOD = frozenset({0x87, 0x8A, TAKEN_OVER, 0x9D})  # a DISCONNECT of 5.0 after which we stay away
NO_MESSAGE = {
    0x87: ("not-authorised", "the broker does not let us publish there"),
    0x90: ("topic-invalid", "the broker does not take this topic name"),
    0x99: ("payload-format", "the broker finds that the payload is not what it declares"),
}
FAILURE = 0x80


def connack_error(where: str, version: str, code: int) -> GatewayError | None:
    """The refusal in a CONNACK; None when it is none."""
    if code == 0:
        return None
    table = CONNACK_5 if version == "5" else CONNACK_3
    for_good, reason = table.get(code, (False, f"reason 0x{code:02x}"))
    text = f"{where}: the broker refuses the connection: {reason}"
    return EndpointError(text) if for_good else NotConnectedError(text)


def disconnect_error(where: str, client_id: str, reason: str, code: int) -> GatewayError:
    """Why the broker ended the session (5.0)."""
    text = f"{where}: the broker ended the session of client {client_id!r}: {reason}"
    if code == TAKEN_OVER:
        text += "; give each client an id of its own (`client_id`)"
    return EndpointError(text) if code in FOR_GOOD else NotConnectedError(text)


def publish_settlement(code: int) -> Settlement:
    """What the reason in a PUBACK, PUBREC or PUBCOMP says of the message."""
    if code < FAILURE:
        return ACCEPTED
    fault = NO_MESSAGE.get(code)
    return rejected(*fault) if fault else RETRY
