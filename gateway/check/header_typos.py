"""Warn of header rules for a property whose name resembles a field of the message.

`content-type` is a legal property, but the field `content_type` is probably meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from gateway.config.load import Configuration
from gateway.config.nodes import KeyPath, SourceLocation
from gateway.errors import ConfigError
from gateway.proofs.reverse_route import REVERSE_SUFFIX
from gateway.routing.header_draft import FIELD_NAMES, PROPERTY_PREFIX, HeaderName
from gateway.routing.header_rules import HeaderRules

MIN_SIMILARITY = 0.85  # of a name to a field, from 0 to 1
MIN_TYPO_LENGTH = 6  # characters; shorter names must be equal
FIELD_SYNONYMS = {  # the systems' names of the fields, in lower case and without signs
    **{name.replace("_", ""): name for name in FIELD_NAMES},
    **dict.fromkeys(("jmspriority", "messagepriority"), "priority"),
    **dict.fromkeys(("expiration", "jmsexpiration", "expires"), "expiry"),
    **dict.fromkeys(("timetolive", "jmstimetolive", "messageexpiryinterval"), "ttl"),
    **dict.fromkeys(("deliverymode", "jmsdeliverymode", "qos"), "mode"),
    **dict.fromkeys(("correlationdata", "jmscorrelationid"), "correlation_id"),
    **dict.fromkeys(("responsetopic", "jmsreplyto"), "reply_to"),
    **dict.fromkeys(("retain", "retainflag"), "retained"),
    **dict.fromkeys(("redelivered", "jmsredelivered"), "redelivered"),
    **dict.fromkeys(("time", "jmstimestamp"), "time"),
    **dict.fromkeys(("sourceid", "messageid", "jmsmessageid"), "source_id"),
}


def field_meant(name: str) -> str:
    """Return the field that a property's name resembles; empty when there is none."""
    word = "".join(char for char in name.lower() if char.isalnum())
    if word in FIELD_SYNONYMS:
        return FIELD_SYNONYMS[word]
    likely = [
        each
        for each in FIELD_SYNONYMS
        if len(each) >= MIN_TYPO_LENGTH and not word.startswith(each)
    ]
    close = get_close_matches(word, likely, n=1, cutoff=MIN_SIMILARITY)
    return FIELD_SYNONYMS[close[0]] if close and close[0][0] == word[0] else ""


def header_typos(configuration: Configuration) -> list[ConfigError]:
    """Return a warning for each rule whose name resembles a field, once for each place."""
    found: dict[SourceLocation, ConfigError] = {}
    for route in configuration.routes:
        if route.name.endswith(REVERSE_SUFFIX):
            continue
        for number, target in enumerate(route.targets):
            at: KeyPath = ("routes", route.name, "to", number, "headers")
            for name, rest in _rule_names(target.rules):
                location = configuration.locations.get((*at, *rest))
                meant = "" if name.is_field or name.prefixed else field_meant(name.text)
                if meant and location is not None:
                    found.setdefault(location, _warning(location, rest[0], name.text, meant))
    return list(found.values())


def _rule_names(rules: HeaderRules) -> Iterator[tuple[HeaderName, KeyPath]]:
    """Yield the names in the rules, each with its key below `headers`."""
    for name, _ in rules.maps:
        yield name, ("map", name.text)
    for old, new in rules.renames:
        written = (PROPERTY_PREFIX if old.prefixed else "") + old.text
        yield old, ("rename", written)
        yield new, ("rename", written)
    for number, name in enumerate(rules.drops):
        if not name.text.endswith("*"):
            yield name, ("drop", number)
    for name, _ in rules.sets:
        yield name, ("set", name.text)


def _warning(location: SourceLocation, rule: str | int, name: str, meant: str) -> ConfigError:
    reason = f"{name!r} under `{rule}` is a property, and not the field {meant!r} of a message"
    hint = f"write {PROPERTY_PREFIX + name!r} when the property is meant"
    if meant in FIELD_NAMES:
        hint = f"did you mean {meant!r}? {hint}"
    else:
        reason = f"{reason}, which no rule changes"
    return location.error("nearly-a-field", reason, hint, "warning")
