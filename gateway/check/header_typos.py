"""Header rules that name a property which is nearly a field of the message; nothing else is judged.

`content-type` is as good a property as any, and most often somebody meant `content_type`.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from types import MappingProxyType

from gateway.config.build import BACK, At
from gateway.config.load import Configuration
from gateway.config.nodes import Place
from gateway.errors import ConfigError
from gateway.routing.header_draft import HEADERS, PROPERTY, Slot
from gateway.routing.headers import HeaderRules

CLOSE = 0.85  # how much of a word has to be right
SHORTEST = 6  # characters of a word that may hold a slip
WORDS = MappingProxyType(  # what the systems call the fields, without case and signs
    {
        **{name.replace("_", ""): name for name in HEADERS},
        **dict.fromkeys(("jmspriority", "messagepriority"), "priority"),
        **dict.fromkeys(("expiration", "jmsexpiration", "expires"), "expiry"),
        **dict.fromkeys(("timetolive", "jmstimetolive", "messageexpiryinterval"), "ttl"),
        **dict.fromkeys(("deliverymode", "jmsdeliverymode", "qos"), "mode"),
        **dict.fromkeys(("correlationdata", "jmscorrelationid"), "correlation_id"),
        **dict.fromkeys(("responsetopic", "jmsreplyto"), "reply_to"),
    }
)


def field_meant(name: str) -> str:
    """The field of a message that a property's name looks like; empty when it looks like none."""
    word = "".join(char for char in name.lower() if char.isalnum())
    if word in WORDS:
        return WORDS[word]
    likely = [each for each in WORDS if len(each) >= SHORTEST and not word.startswith(each)]
    close = get_close_matches(word, likely, n=1, cutoff=CLOSE)
    return WORDS[close[0]] if close and close[0][0] == word[0] else ""


def nearly_fields(configuration: Configuration) -> list[ConfigError]:
    """A warning for every rule whose name misses a field by a little, once for each place."""
    found: dict[Place, ConfigError] = {}
    for route in configuration.routes:
        if route.name.endswith(BACK):
            continue
        for number, target in enumerate(route.targets):
            at: At = ("routes", route.name, "to", number, "headers")
            for slot, rest in _slots(target.rules):
                place = configuration.places.get((*at, *rest))
                meant = "" if slot.header or slot.stated else field_meant(slot.name)
                if meant and place is not None:
                    found.setdefault(place, _warning(place, rest[0], slot.name, meant))
    return list(found.values())


def _slots(rules: HeaderRules) -> Iterator[tuple[Slot, At]]:
    """What the rules name, and where that stands below `headers`."""
    for slot, _ in rules.maps:
        yield slot, ("map", slot.name)
    for old, new in rules.renames:
        written = (PROPERTY if old.stated else "") + old.name
        yield old, ("rename", written)
        yield new, ("rename", written)
    for number, slot in enumerate(rules.drops):
        if not slot.name.endswith("*"):
            yield slot, ("drop", number)
    for slot, _ in rules.sets:
        yield slot, ("set", slot.name)


def _warning(place: Place, rule: str | int, name: str, meant: str) -> ConfigError:
    reason = f"{name!r} under `{rule}` is a property, and not the field {meant!r} of a message"
    hint = f"did you mean {meant!r}? write {PROPERTY + name!r} when the property is meant"
    return place.error("nearly-a-field", reason, hint, "warning")
