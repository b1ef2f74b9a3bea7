"""Headers from the options `--property NAME=VALUE`, as a source would receive them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError
from gateway.model.message import DeliveryMode, Headers, Value
from gateway.routing.selectors.ast import SelectorField
from gateway.routing.selectors.selector import Selector
from gateway.routing.selectors.values import compile_value

_MODES = {"PERSISTENT": DeliveryMode.AT_LEAST_ONCE, "NON_PERSISTENT": DeliveryMode.AT_MOST_ONCE}
_DEFAULTS = {"JMSDeliveryMode": "mode", "JMSPriority": "priority"}  # headers with a default value
MAX_PRIORITY = 9


def parse_properties(options: Sequence[str]) -> dict[str, str]:
    """Return the values by name.

    Raises:
        GatewayError: an option is not NAME=VALUE, or the value of a JMS header is illegal.
    """
    found: dict[str, str] = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not name or not sign:
            raise GatewayError(f"--property {option}: write NAME=VALUE")
        found[name] = value
    _fields(found)
    return found


def given_headers(given: Mapping[str, str], settings: EndpointSettings) -> Headers:
    """Return the headers at a source; what it does not carry is left out.

    A property is a text where the system has no types, else a JSON value or, if it is none, a text.
    """
    carries = settings.carries
    fields = {name: value for name, value in _fields(given).items() if name in carries}
    if "properties" in carries:
        typed = find_kind(settings).typed_properties
        fields["properties"] = {
            name: _typed(value) if typed else value
            for name, value in given.items()
            if name == "JMSType" or not name.startswith("JMS") or name.startswith(("JMSX", "JMS_"))
        }
    return Headers(**fields)  # type: ignore[arg-type]  # the fields of `_fields`


def assumed_values(
    selector: Selector, given: Mapping[str, str], settings: EndpointSettings
) -> dict[str, Value]:
    """Return the headers in the selector that have the default of JMS, with that value.

    They are not given, or the source does not carry them.
    """
    headers = given_headers(given, settings)
    return {
        name: compile_value(SelectorField(name))(headers)
        for name, field in _DEFAULTS.items()
        if name in selector.names and not (name in given and field in settings.carries)
    }


def _fields(given: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of the JMS headers, as `routing.selectors.values` reads them."""
    try:
        found: dict[str, object] = {
            "priority": int(given["JMSPriority"]) if "JMSPriority" in given else None,
            "time": int(given["JMSTimestamp"]) * 1_000 if "JMSTimestamp" in given else None,
            "mode": _MODES[given.get("JMSDeliveryMode", "PERSISTENT")],
        }
    except ValueError as error:
        raise GatewayError("JMSPriority and JMSTimestamp are whole numbers") from error
    except KeyError as error:
        raise GatewayError(f"JMSDeliveryMode is one of {', '.join(_MODES)}") from error
    if not 0 <= int(given.get("JMSPriority", 0)) <= MAX_PRIORITY:
        raise GatewayError(f"JMSPriority is a number from 0 to {MAX_PRIORITY}")
    found["source_id"] = given.get("JMSMessageID")
    found["correlation_id"] = given.get("JMSCorrelationID")
    return found


def _typed(text: str) -> Value:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, bool | int | float | str) else text
