"""The characters for which an MQTT broker may close the connection (MQTT 5.0, 1.5.4).

They are control characters and noncharacters; mosquitto closes for them. NUL and surrogates have
rules of their own.
"""

from __future__ import annotations

import re
from typing import Final

_CLOSING: Final = "\x01-\x1f\x7f-\x9f\ufdd0-\ufdef" + "".join(
    f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17)
)
_search: Final = re.compile(f"[{_CLOSING}]").search


def closing_character(text: str) -> str:
    """Return the first such character of a text, or "" where it has none."""
    if text.isprintable() or (found := _search(text)) is None:
        return ""
    return found[0]


def why_refused(character: str, field_name: str) -> str:
    """Return the reason for a refusal of a field that has the character."""
    return f"the {field_name} holds U+{ord(character):04X}, and a broker may hang up for it"
