"""Headers of a message that a user describes, as a source would receive them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError, TranslationError
from gateway.model.message import HEADER_FIELDS, NO_HEADERS, DeliveryMode, Headers, Value
from gateway.routing.header_draft import FIELD_NAMES, HeaderDraft, HeaderName
from gateway.routing.selectors.ast import SelectorField
from gateway.routing.selectors.selector import Selector
from gateway.routing.selectors.values import compile_value

_MODES = {"PERSISTENT": DeliveryMode.AT_LEAST_ONCE, "NON_PERSISTENT": DeliveryMode.AT_MOST_ONCE}
_DEFAULTS = {"JMSDeliveryMode": "mode", "JMSPriority": "priority"}  # headers with a default value
_FIELDS = {
    "JMSPriority": "priority",
    "JMSTimestamp": "time",
    "JMSDeliveryMode": "mode",
    "JMSMessageID": "source_id",
    "JMSCorrelationID": "correlation_id",
}
MAX_PRIORITY = 9


def parse_properties(options: Sequence[str]) -> dict[str, str]:
    """Return the values of `--property` by name.

    Raises:
        GatewayError: an option is not NAME=VALUE, or the value of a JMS header is illegal.
    """
    found = _by_name("--property", options)
    jms_fields(found)
    return found


def parse_headers(options: Sequence[str], now_us: int) -> dict[str, Value]:
    """Return the fields of `Headers` by name, from the names and values that header rules have.

    Raises:
        GatewayError: an option is not NAME=VALUE, or its name or value is illegal.
    """
    draft, fields = HeaderDraft(NO_HEADERS, now_us), set()
    for name, value in _by_name("--header", options).items():
        if name not in FIELD_NAMES:
            known = ", ".join(FIELD_NAMES)
            raise GatewayError(
                f"--header {name}: unknown header; known are {known}; --property gives a property"
            )
        try:
            draft.write(HeaderName(name, is_field=True), value)
        except TranslationError as error:
            raise GatewayError(f"--header {name}={value}: {error.reason}") from error
        fields.add("expiry" if name == "ttl" else name)
    made = draft.finish()
    return {name: getattr(made, name) for name in HEADER_FIELDS if name in fields}


def _by_name(option: str, texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise GatewayError(f"{option} {text}: write NAME=VALUE")
        found[name] = value
    return found


def typed_values(given: Mapping[str, str], settings: EndpointSettings) -> Mapping[str, Value]:
    """Return JSON values, and the texts that are none; texts alone where a system has no types."""
    if not find_kind(settings).typed_properties:
        return given
    return {name: _typed(value) if is_property(name) else value for name, value in given.items()}


def given_headers(given: Mapping[str, Value], settings: EndpointSettings) -> Headers:
    """Return the headers of properties and JMS headers at a source.

    The source leaves out what it does not carry.

    Raises:
        GatewayError: the value of a JMS header is illegal.
    """
    fields: dict[str, object] = {"mode": DeliveryMode.AT_LEAST_ONCE, **jms_fields(given)}
    fields["properties"] = {name: value for name, value in given.items() if is_property(name)}
    carried = {name: value for name, value in fields.items() if name in settings.carries}
    return Headers(**carried)  # type: ignore[arg-type]  # the fields of `jms_fields`


def is_property(name: str) -> bool:
    """Return whether JMS has a property of this name; else it is a header."""
    return name == "JMSType" or not name.startswith("JMS") or name.startswith(("JMSX", "JMS_"))


def assumed_values(
    selector: Selector, given: Mapping[str, str], settings: EndpointSettings
) -> dict[str, Value]:
    """Return the headers in the selector that have the default of JMS, with that value.

    They are not given, or the source does not carry them.
    """
    headers = given_headers(typed_values(given, settings), settings)
    return {
        name: compile_value(SelectorField(name))(headers)
        for name, field in _DEFAULTS.items()
        if name in selector.names and not (name in given and field in settings.carries)
    }


def jms_fields(given: Mapping[str, Value]) -> dict[str, object]:
    """Return the fields of the JMS headers in `given`, as `routing.selectors.values` reads them.

    Raises:
        GatewayError: the value of a JMS header is illegal.
    """
    texts = {name: str(value) for name, value in given.items() if name in _FIELDS}
    found: dict[str, object] = {_FIELDS[name]: text for name, text in texts.items()}
    try:
        if "JMSPriority" in texts:
            found["priority"] = int(texts["JMSPriority"])
        if "JMSTimestamp" in texts:
            found["time"] = int(texts["JMSTimestamp"]) * 1_000
        if "JMSDeliveryMode" in texts:
            found["mode"] = _MODES[texts["JMSDeliveryMode"]]
    except ValueError as error:
        raise GatewayError("JMSPriority and JMSTimestamp are whole numbers") from error
    except KeyError as error:
        raise GatewayError(f"JMSDeliveryMode is one of {', '.join(_MODES)}") from error
    if not 0 <= int(texts.get("JMSPriority", 0)) <= MAX_PRIORITY:
        raise GatewayError(f"JMSPriority is a number from 0 to {MAX_PRIORITY}")
    return found


def _typed(text: str) -> Value:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, bool | int | float | str) else text
