"""Property names for headers that have no field in SMF, and SMF's default values."""

from __future__ import annotations

from typing import Final

DEFAULT_PRIORITY: Final = 4  # of the library, for messages without one
MICROSECONDS_PER_MS: Final = 1_000  # SMF counts milliseconds

GATEWAY_PREFIX: Final = "gateway-"
PRIORITY: Final = f"{GATEWAY_PREFIX}priority"
TIME: Final = f"{GATEWAY_PREFIX}time"  # microseconds, for times that milliseconds cannot express
EXPIRY: Final = f"{GATEWAY_PREFIX}expiry"
MODE: Final = f"{GATEWAY_PREFIX}mode"
RETAINED: Final = f"{GATEWAY_PREFIX}retained"
ORIGIN: Final = f"{GATEWAY_PREFIX}origin"
PROOF: Final = f"{GATEWAY_PREFIX}proof"
CORRELATION: Final = f"{GATEWAY_PREFIX}correlation"  # a correlation id of bytes
REPLY_TO: Final = f"{GATEWAY_PREFIX}reply-to"  # a reply address that is not a topic
PAYLOAD: Final = f"{GATEWAY_PREFIX}payload"  # `text`: a text with a NUL, sent as bytes
PROPERTIES: Final = f"{GATEWAY_PREFIX}properties"  # whose names the library would misread
GATEWAY_NAMES: Final = frozenset(
    {
        PRIORITY,
        TIME,
        EXPIRY,
        MODE,
        RETAINED,
        ORIGIN,
        PROOF,
        CORRELATION,
        REPLY_TO,
        PAYLOAD,
        PROPERTIES,
    }
)

PARTITION_KEY: Final = "JMSXGroupID"
UNDECODED: Final = "solace.undecoded"  # decoding error; the payload is then the whole message
UNDECODED_TOPIC: Final = "solace.topic"  # the topic of such a message, if readable
