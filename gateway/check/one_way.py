"""What a route in both directions does on its way forth alone; the way back is `proofs.back`."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.config.build import BACK
from gateway.config.load import Configuration
from gateway.config.nodes import Place
from gateway.errors import ConfigError
from gateway.routing.route import Route

HINT = "write two routes, each with what holds for its direction"


def one_way(configuration: Configuration) -> Iterator[ConfigError]:
    """A warning for every such route."""
    routes = {route.name: route for route in configuration.routes}
    for name, back in routes.items():
        there = routes.get(name.removesuffix(BACK))
        if there is not None and back.inverse == there.name and name.endswith(BACK):
            place = configuration.places.get(("routes", there.name, "direction"), Place("", 1, 1))
            if lacking := ", ".join(_lacking(there, back)):
                reason = f"route {there.name!r}: the way back goes without {lacking}"
                yield place.error("not-on-the-way-back", reason, HINT, "warning")


def _lacking(there: Route, back: Route) -> Iterator[str]:
    """What the way back does not do, in the words of the file."""
    forth, home = there.targets[0], back.targets[0]
    if there.selector is not None:
        yield "`selector`"
    parts = [
        ("map", forth.rules.maps),
        ("rename", () if home.rules.renames else forth.rules.renames),
        ("drop", forth.rules.drops),
        ("set", forth.rules.sets),
    ]
    if words := [f"`{word}`" for word, rules in parts if rules]:
        yield f"{' and '.join(words)} of `headers`"
    if forth.conversion is not None:
        yield f"`payload: {forth.conversion.form.value}`"
