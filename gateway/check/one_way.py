"""Warn of settings that a route in both directions applies in the forward direction only."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.check.key_location import key_location
from gateway.config.load import Configuration
from gateway.errors import ConfigError
from gateway.proofs.reverse_route import REVERSE_SUFFIX
from gateway.routing.route import Route

HINT = "write two routes, each with the settings of its direction"


def forward_only_rules(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each route whose reverse route lacks some of its settings."""
    routes = {route.name: route for route in configuration.routes}
    for forward in routes.values():
        reverse = routes.get(forward.name + REVERSE_SUFFIX)
        if reverse is None or reverse.inverse != forward.name:
            continue
        if lacking := ", ".join(_lacking(forward, reverse)):
            location = key_location(("routes", forward.name, "direction"), configuration)
            reason = f"route {forward.name!r}: the reverse route does not apply {lacking}"
            yield location.error("not-on-the-way-back", reason, HINT, "warning")


def _lacking(forward: Route, reverse: Route) -> Iterator[str]:
    """Yield the settings that the reverse route lacks, as the file names them."""
    target, reverse_target = forward.targets[0], reverse.targets[0]
    if forward.selector is not None:
        yield "`selector`"
    parts = [
        ("map", target.rules.maps),
        ("rename", () if reverse_target.rules.renames else target.rules.renames),
        ("drop", target.rules.drops),
        ("set", target.rules.sets),
    ]
    if words := [f"`{word}`" for word, rules in parts if rules]:
        yield f"{' and '.join(words)} of `headers`"
    if target.conversion is not None:
        yield f"`payload: {target.conversion.form.value}`"
