"""How `Headers` are spelled in SMF; what has no field there crosses as `gateway-...` property."""

from __future__ import annotations

from typing import Final

DEFAULT_PRIORITY: Final = 4  # what the library sends when nobody asks for one
MILLI: Final = 1_000  # microseconds in the unit of SMF's times

PREFIX: Final = "gateway-"
PRIORITY: Final = f"{PREFIX}priority"
TIME: Final = f"{PREFIX}time"  # microseconds, when the milliseconds of SMF do not say it all
EXPIRY: Final = f"{PREFIX}expiry"
MODE: Final = f"{PREFIX}mode"
RETAINED: Final = f"{PREFIX}retained"
ORIGIN: Final = f"{PREFIX}origin"
CORRELATION: Final = f"{PREFIX}correlation"  # a correlation id that is bytes
REPLY_TO: Final = f"{PREFIX}reply-to"  # one that is no topic
PAYLOAD: Final = f"{PREFIX}payload"  # `text`, when a text with a NUL went as bytes
PROPERTIES: Final = f"{PREFIX}properties"  # those whose names the library would misread
OWN: Final = frozenset(
    {PRIORITY, TIME, EXPIRY, MODE, RETAINED, ORIGIN, CORRELATION, REPLY_TO, PAYLOAD, PROPERTIES}
)

PARTITION_KEY: Final = "JMSXGroupID"
UNDECODED: Final = "solace.undecoded"  # why the payload is a whole message, as it came
TOPIC: Final = "solace.topic"  # the topic of such a message, when it could be read
