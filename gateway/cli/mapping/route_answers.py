"""The names of a message at the targets of a route."""

from __future__ import annotations

from pathlib import Path

from gateway.check.described_message import DescribedMessage
from gateway.check.result_copies import copies
from gateway.cli.mapping.name_requests import Answer
from gateway.config.load import Configuration
from gateway.errors import GatewayError, TranslationError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.message import Message
from gateway.routing.message_fields import FieldValues, read_fields
from gateway.routing.proven_names import taken_as
from gateway.routing.route import Route, Target
from gateway.routing.tags import TagSelection

NOT_TAKEN = "not-taken"


def find_route(configuration: Configuration, name: str, file: Path) -> Route:
    """Return the route of this name; `file` is that of the configuration.

    Raises:
        GatewayError: there is none.
    """
    routes = {route.name: route for route in configuration.routes}
    if name not in routes:
        known = ", ".join(routes) or "none"
        raise GatewayError(f"{file}: no route {name!r}; there are {known}")
    return routes[name]


def route_answers(
    route: Route, given: DescribedMessage, configuration: Configuration
) -> list[Answer]:
    """Return what a message becomes at each target of a route, or why the route does not take it.

    A message that is only a name has no fields.

    Raises:
        GatewayError: the name is illegal at the source, or a JMS header of the message.
    """
    values: FieldValues = {}
    refused: dict[str, Answer] = {}
    if given:
        message = given.at(configuration.endpoints[route.endpoint].settings)
        values = read_fields(route.fields, message)
        refused = _refused(route, message, configuration)
    taken = taken_as(route, given.name, values)
    if isinstance(taken, str):
        why = f": {taken}" if route.names_of is not None else ""
        reason = f"route {route.name} does not take {given.name!r}{why}"
        return [{"refused": reason, "rule": NOT_TAKEN}]
    if given.payload is None:  # not said, and so not judged
        refused = {label: each for label, each in refused.items() if each["rule"] != PAYLOAD}
    return [
        _at_target(target, taken, values) | refused.get(target.label, {})
        for target in route.targets
    ]


def _refused(route: Route, message: Message, configuration: Configuration) -> dict[str, Answer]:
    """Return why no copy of a message is made, by target: by its name, headers or payload."""
    return {
        each.target.label: {"refused": each.reason, "rule": each.refused}
        for each in copies([route], message, configuration)
        if each.message is None and each.target is not None
    }


def _at_target(target: Target, taken: TagSelection, values: FieldValues) -> Answer:
    place: Answer = {"target": target.label, "system": target.system}
    try:
        captures = {**taken.captures, **target.field_captures(values)}
        return place | {"name": target.name_for(taken.tag.subject, captures)}
    except TranslationError as error:
        return place | {"refused": str(error), "rule": error.rule}
