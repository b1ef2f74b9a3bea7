"""The check of the section `state`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gateway.config.build_endpoint import Endpoint, RouteContext
from gateway.config.place import Place
from gateway.config.state_settings import StateSettings
from gateway.dialects.base import parse_subject
from gateway.endpoints.registry import find_kind
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import NOT_ALLOWED
from gateway.routing.route import Route
from gateway.translate.names import OnUnmappable, Renderer


def check_states(
    states: Sequence[StateSettings], routes: Collection[Route], context: RouteContext, place: Place
) -> None:
    """Report endpoints that are unknown, of another kind or told twice, and names that none has."""
    used = {route.endpoint for route in routes}
    used |= {target.endpoint for route in routes for target in route.targets}
    told: set[str] = set()
    for number, state in enumerate(states):
        here = place[number]
        for position, name in enumerate(state.endpoint):
            at = here["endpoint"][position]
            if name in told:
                reason = f"endpoint {name!r} tells of another state: a connection has one will"
                at.report("setting", reason, "make a second endpoint for that broker")
            told.add(name)
            if (endpoint := context.find(name, at)) is not None:
                _check_name(state.name, endpoint, here["name"], at)
        if context.find(state.of, here["of"]) is not None and state.of not in used | {
            *state.endpoint
        }:
            reason = f"no route uses endpoint {state.of!r}, so that it is never connected"
            here["of"].report("setting", reason, "write an endpoint of a route")


def _check_name(name: str, endpoint: Endpoint, place: Place, at: Place) -> None:
    kind = find_kind(endpoint.settings)
    if not kind.leaves_will:
        reason = f"endpoint {endpoint.settings.name!r}: a broker of {kind.name} keeps no such state"
        at.report("setting", reason, "write an endpoint of `kind: mqtt`")
        return
    place.parse(_rendered, name, endpoint, hint="write another name")


def _rendered(name: str, endpoint: Endpoint) -> None:
    """Raise an error unless the endpoint may send to this name."""
    subject = parse_subject(name, endpoint.dialect)
    Renderer(endpoint.dialect, OnUnmappable.REJECT).render(subject)
    if endpoint.allow and not any(each.selects(subject.levels) for each in endpoint.allow):
        reason = "is outside of what the endpoint allows"
        raise TranslationError(endpoint.dialect.name, name, NOT_ALLOWED, reason)
