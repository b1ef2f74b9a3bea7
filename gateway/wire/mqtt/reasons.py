"""The meaning of a broker's reason codes: permanent, temporary, or about one message only.

MQTT 3.1.1, 3.2.2.3 and MQTT 5.0, 2.4.
"""

from __future__ import annotations

from gateway.errors import EndpointError, GatewayError, NotConnectedError, TakenOverError
from gateway.model.dead_letter_rule import (
    NOT_AUTHORISED,
    PACKET_SIZE,
    PAYLOAD_FORMAT,
    QOS,
    RETAIN,
    TOPIC_INVALID,
)
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Settlement, rejected

CONNACK_5 = {  # reason -> whether it is permanent, text
    0x01: (True, "it does not support MQTT 5.0; try version 3.1.1"),
    0x81: (True, "it reports our CONNECT as malformed"),
    0x82: (True, "it reports our CONNECT as a protocol error"),
    0x84: (True, "it does not support MQTT 5.0; try version 3.1.1"),
    0x85: (True, "it rejects this client id; choose another"),
    0x86: (True, "bad user name or password; check the credentials"),
    0x87: (True, "not authorised; check the credentials and the broker's access rules"),
    0x8A: (True, "it has banned this client"),
    0x8C: (True, "bad authentication method"),
    0x95: (True, "our CONNECT is too large for it"),
    0x9D: (True, "it has moved; ask for its new address"),
}
CONNACK_3 = {
    1: (True, "it does not support MQTT 3.1.1; try version 5"),
    2: CONNACK_5[0x85],
    3: (False, "it is not available"),
    4: CONNACK_5[0x86],
    5: CONNACK_5[0x87],
}
TAKEN_OVER = 0x8E
ANOTHER_CLIENT = "another client uses this id"
GIVE_OWN_IDS = (
    "give each client an id of its own (`client_id`), and each gateway a name of its own"
    " (`gateway.name`)"
)
PERMANENT_DISCONNECTS = frozenset({0x87, 0x8A, 0x9D})
# By the reason of a PUBACK or PUBREC; others may be over soon. MQTT 5.0, 3.4.2.1 and 3.5.2.1, do
# not list 0x95, 0x9A and 0x9B, but brokers send them; they are about one message.
FAILURES = {
    0x87: rejected(NOT_AUTHORISED, "the broker does not let us publish there"),
    0x90: rejected(TOPIC_INVALID, "the broker rejects this topic name"),
    0x95: rejected(PACKET_SIZE, "the packet is too large for the broker"),
    0x97: NO_ROOM,  # quota exceeded
    0x99: rejected(PAYLOAD_FORMAT, "the broker reports that the payload is not UTF-8 as declared"),
    0x9A: rejected(RETAIN, "the broker keeps no retained messages"),
    0x9B: rejected(QOS, "the broker does not accept this QoS"),
}
FAILURE = 0x80  # reasons from here on are failures
_NAMES = {  # of a SUBACK and a DISCONNECT (MQTT 5.0, 2.4)
    0x00: "Normal disconnection",
    0x80: "Unspecified error",
    0x81: "Malformed packet",
    0x82: "Protocol error",
    0x83: "Implementation specific error",
    0x87: "Not authorized",
    0x89: "Server busy",
    0x8B: "Server shutting down",
    0x8D: "Keep alive timeout",
    TAKEN_OVER: "Session taken over",
    0x8F: "Topic filter invalid",
    0x90: "Topic name invalid",
    0x91: "Packet identifier in use",
    0x93: "Receive maximum exceeded",
    0x94: "Topic alias invalid",
    0x95: "Packet too large",
    0x96: "Message rate too high",
    0x97: "Quota exceeded",
    0x98: "Administrative action",
    0x99: "Payload format invalid",
    0x9A: "Retain not supported",
    0x9B: "QoS not supported",
    0x9C: "Use another server",
    0x9D: "Server moved",
    0x9E: "Shared subscription not supported",
    0x9F: "Connection rate exceeded",
    0xA0: "Maximum connect time",
    0xA1: "Subscription identifiers not supported",
    0xA2: "Wildcard subscription not supported",
}


def reason_text(code: int, reason_string: str = "") -> str:
    """Return the name of a reason code, with the broker's own reason string if it sent one."""
    name = _NAMES.get(code, f"reason 0x{code:02x}")
    return f"{name}: {reason_string!r}" if reason_string else name


def connack_error(label: str, version: str, code: int, reason_string: str = "") -> GatewayError:
    """Return the error of a CONNACK that refuses the connection."""
    table = CONNACK_5 if version == "5" else CONNACK_3
    permanent, reason = table.get(code, (False, f"reason 0x{code:02x}"))
    text = f"{label}: the broker refuses the connection: {reason}"
    if reason_string:
        text += f" ({reason_string!r})"
    return EndpointError(text) if permanent else NotConnectedError(text)


def disconnect_error(label: str, client_id: str, reason: str, code: int) -> GatewayError:
    """Return the error of a DISCONNECT from the broker (5.0)."""
    text = f"{label}: the broker ended the session of client {client_id!r}: {reason}"
    if code == TAKEN_OVER:
        return TakenOverError(f"{text}: {ANOTHER_CLIENT}; {GIVE_OWN_IDS}")
    return EndpointError(text) if code in PERMANENT_DISCONNECTS else NotConnectedError(text)


def publish_settlement(code: int) -> Settlement:
    """Return the settlement of a message after the reason of a PUBACK, PUBREC or PUBCOMP."""
    return FAILURES.get(code, RETRY) if code >= FAILURE else ACCEPTED
