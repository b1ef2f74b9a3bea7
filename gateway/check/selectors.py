"""Findings about selectors that are true for no message of their source, or for few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gateway.config.load import Configuration
from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import ConfigError
from gateway.routing.selectors.ast import IsNull, Node, SelectorField, walk
from gateway.routing.selectors.outcomes import (
    ANY,
    PRIORITIES,
    Fields,
    Kind,
    Possible,
    conditions,
    possible_outcomes,
)
from gateway.routing.selectors.selector import Selector
from gateway.routing.selectors.values import DEFAULT_PRIORITY

_ABSENT: Final = Possible(frozenset({Kind.NULL}))
_TEXT: Final = Possible(frozenset({Kind.NULL, Kind.TEXT}))
_DEFAULT: Final = Possible(frozenset({Kind.NUMBER}), (DEFAULT_PRIORITY,))
_MODES: Final = Possible(frozenset({Kind.TEXT}), ("PERSISTENT", "NON_PERSISTENT"))
_HEADERS: Final = {  # field of `Headers`, its values where a source carries it, and elsewhere
    "JMSMessageID": ("source_id", _TEXT, _ABSENT),
    "JMSTimestamp": ("time", Possible(frozenset({Kind.NULL, Kind.NUMBER})), _ABSENT),
    "JMSCorrelationID": ("correlation_id", _TEXT, _ABSENT),
    "JMSDeliveryMode": ("mode", _MODES, _MODES),
    "JMSPriority": ("priority", PRIORITIES, _DEFAULT),
}


def selector_faults(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield the findings about each selector that the gateway evaluates itself."""
    numbers: Counter[str] = Counter()
    for route in configuration.routes:
        number = numbers[route.name]
        numbers[route.name] += 1
        settings = configuration.endpoints[route.endpoint].settings
        if route.selector is None or settings.evaluates_selectors:
            continue
        at = ("routes", route.name, "from", number, "selector")
        if (found := _fault(route.selector, settings)) is not None:
            rule, severity, reason, hint = found
            location, text = configuration.location_of(at), f"route {route.name!r}: {reason}"
            unknown = at in configuration.placeholders
            yield location.not_checked() if unknown else location.error(rule, text, hint, severity)


def _fault(selector: Selector, settings: EndpointSettings) -> tuple[str, str, str, str] | None:
    """Return rule, severity, reason and hint; None when each part of the selector matters."""
    here = f"of {settings.name!r}"
    every, usual = _fields(settings, usual=False), _fields(settings, usual=True)
    if True not in possible_outcomes(selector.tree, every):
        text = f"its selector is true for no message {here}"
        return "impossible-selector", "error", *_told(text, _useless(selector.tree, every), every)
    if True not in possible_outcomes(selector.tree, usual):
        text = f"its selector is true only for messages {here} that another gateway sent"
        parts = _useless(selector.tree, usual)
    elif parts := _useless(selector.tree, usual):
        text = f"a part of its selector is not true for a message {here}"
    elif parts := _without_effect(selector.tree, usual):
        text = f"under NOT, a part of its selector leaves out no message {here} that has it"
    else:
        return None
    return "doubtful-selector", "warning", *_told(text, parts, usual)


def _useless(tree: Node, fields: Fields) -> list[Node]:
    """Return the parts that never help the selector to be true; some when it never is."""
    return [
        each for each, wanted in conditions(tree) if wanted not in possible_outcomes(each, fields)
    ]


def _without_effect(tree: Node, fields: Fields) -> list[Node]:
    """Return the parts under NOT that are never true; IS NOT NULL is not a test of a value."""
    return [
        each
        for each, wanted in conditions(tree)
        if not wanted
        and not isinstance(each, IsNull)
        and True not in possible_outcomes(each, fields)
    ]


def _told(text: str, parts: list[Node], fields: Fields) -> tuple[str, str]:
    places = dict.fromkeys(_describe(each, fields) for each in parts)  # BETWEEN is two parts
    return f"{text}: {'; '.join(places)}", _hint(parts, fields)


def _fields(settings: EndpointSettings, *, usual: bool) -> Fields:
    """Return the values of headers and properties at a source; `usual` without other gateways."""
    headers = {
        name: carried if field in settings.carries else absent
        for name, (field, carried, absent) in _HEADERS.items()
    }
    properties = _TEXT if usual and not find_kind(settings).typed_properties else Possible(ANY)
    others = properties if "properties" in settings.carries else _ABSENT
    return lambda name: headers.get(name, others)


def _describe(condition: Node, fields: Fields) -> str:
    """Say what the headers and properties of a condition are, and where it stands."""
    facts = [f"{name!r} is {_values(fields(name))}" for name in _names(condition)]
    return f"at character {condition.offset + 1}, where {' and '.join(facts) or 'it is constant'}"


def _values(possible: Possible) -> str:
    if possible.values:
        shown = [str(each) for each in possible.values]
        return "one of " + ", ".join(shown) if len(shown) > 1 else f"always {shown[0]}"
    kinds = [each.value for each in Kind if each in possible.kinds and each is not Kind.NULL]
    if len(kinds) == len(Kind) - 1:
        return "any value"
    return f"{' or '.join(kinds)}, if present" if kinds else "always absent"


def _hint(parts: list[Node], fields: Fields) -> str:
    known = [fields(name) for part in parts for name in _names(part)]
    if any(each == _ABSENT for each in known):
        return "messages there do not have it: use another endpoint or version, or select by name"
    if _TEXT in known:
        return "compare texts by =, <>, IN or LIKE, with a text in apostrophes as in size = '100'"
    return "correct the value"


def _names(node: Node) -> list[str]:
    return sorted({each.name for each, _ in walk(node) if isinstance(each, SelectorField)})
