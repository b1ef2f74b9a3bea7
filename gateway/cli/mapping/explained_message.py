"""The message that `gateway explain` is given, at the source of a route and at its targets."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from gateway.check.described_message import DescribedMessage
from gateway.check.given_headers import (
    assumed_values,
    is_property,
    jms_fields,
    parse_headers,
    parse_properties,
)
from gateway.check.result_copies import NOW, ResultCopy, copies, header_values
from gateway.config.load import Configuration
from gateway.model.message import Message, Value
from gateway.routing.route import Route

_TYPES = {bytes: "bytes", str: "text"}
Values: TypeAlias = Mapping[str, object]  # of one copy, by name, in the order shown


@dataclass(frozen=True, slots=True)
class RouteMessage:
    """One message at a route: what its source leaves out or assumes, and the copies it gets."""

    left_out: tuple[str, ...] = ()
    made: tuple[tuple[Values, ...], ...] = ()  # by the position of the target
    assumed: Mapping[str, Value] = field(default_factory=dict)  # headers that its selector reads

    @property
    def arrives(self) -> bool:
        """Whether a target gets a copy."""
        return any("refused" not in each for found in self.made for each in found)

    def at(self, position: int) -> tuple[Values, ...]:
        """Return the copies of one target; none without a message."""
        return self.made[position] if position < len(self.made) else ()


class TypedMessage:
    """The headers, properties and payload in the arguments of `gateway explain`.

    Raises:
        GatewayError: a header or a property is illegal.
    """

    def __init__(self, args: argparse.Namespace, configuration: Configuration) -> None:
        self._configuration = configuration
        properties, fields = parse_properties(args.properties), parse_headers(args.headers, NOW)
        self._given = DescribedMessage(args.name, properties, args.payload, fields)

    def __bool__(self) -> bool:
        """Whether the arguments say more than a name."""
        return bool(self._given)

    def message_at(self, route: Route) -> Message:
        """Return the message as it arrives at the source of the route."""
        return self._given.at(self._configuration.endpoints[route.endpoint].settings)

    def at(self, route: Route) -> RouteMessage:
        """Return the message at the route, without values of references."""
        if not self:
            return RouteMessage()
        settings = self._configuration.endpoints[route.endpoint].settings
        assumed, properties = {}, self._given.properties
        if properties and route.selector is not None:
            assumed = assumed_values(route.selector, properties, settings)
        given = {**jms_fields(properties), **self._given.fields}
        names = [*given, *(["properties"] if any(map(is_property, properties)) else [])]
        hide = partial(self._configuration.hidden.hide, at=("routes",))
        found = list(copies([route], self.message_at(route), self._configuration))
        made = tuple(
            tuple(dict(copy_values(each, hide)) for each in found if each.target is target)
            for target in route.targets
        )
        left_out = tuple(name for name in names if name not in settings.carries)
        return RouteMessage(left_out, made, assumed)


def copy_values(copy: ResultCopy, hide: Callable[[str], str]) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each part of a copy, in the order shown.

    `hide` takes the values of references out of a text.
    """
    if copy.message is None:
        yield "refused", copy.refused
        yield "reason", hide(copy.reason)
        return
    payload, headers = copy.message.payload, copy.message.headers
    yield "name", hide(copy.message.address)
    yield "mode", headers.mode.name.lower()
    for name, value in {**header_values(headers), "reply_to": headers.reply_to}.items():
        if value is not None and value is not False:
            yield name, _hidden(value, hide)
    yield "properties", {name: _hidden(each, hide) for name, each in headers.properties.items()}
    yield "payload_type", _TYPES.get(type(payload), "map")
    yield "payload", payload.decode(errors="replace") if isinstance(payload, bytes) else payload
    yield "not_carried", list(copy.lost)


def _hidden(value: object, hide: Callable[[str], str]) -> object:
    return hide(value) if isinstance(value, str) else value


def message_lines(copy: Values, endpoint: str) -> Iterator[str]:
    """Yield the lines for one copy of a target; without its payload if `copy` has none."""
    match copy:
        case {"refused": rule, "reason": reason}:
            yield f"     message refused, rule {rule}: {reason}"
        case {"properties": dict(properties), "not_carried": list(lost), **others}:
            kind, payload = others.pop("payload_type"), others.pop("payload", None)
            shown = {name: value for name, value in others.items() if name != "name"}
            yield "     message " + ", ".join(f"{name} {value}" for name, value in shown.items())
            for name, value in properties.items():
                yield f"       property {name} = {value!r}"
            if payload is not None:
                yield f"       payload, {kind}: {payload}"
            if lost:
                yield f"       not carried by {endpoint}: {', '.join(lost)}"
        case _:  # `copy_values` makes no other form
            return
