"""Translation of a name by a configuration, as a function that Spark executors run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateway.config.load import load
from gateway.routing.router import Router


@dataclass(frozen=True, slots=True)
class Retranslator:
    """Translates route, target label and source name to the name at the target.

    Each process loads the configuration once, with the environment of the command.
    """

    path: Path
    environment: tuple[tuple[str, str], ...]

    def __call__(self, route: str, target: str, name: str) -> str:
        """Return the name at the target, or the reason in parentheses."""
        router = _routers(self.path, self.environment).get(route)
        if router is None:
            return "(no such route)"
        for match in router[name]:
            for delivery in match.deliveries:
                if delivery.label == target:
                    return delivery.address or f"(refused: {delivery.rule})"
                if match.route is None:
                    return f"(refused: {delivery.rule})"
        return "(not taken)"


def retranslator(path: Path) -> Retranslator:
    """Return the translator of the configuration at `path`, which is loaded to check it.

    Raises:
        ConfigErrors: the configuration has errors.
    """
    translator = Retranslator(path.resolve(), tuple(sorted(os.environ.items())))
    _routers(translator.path, translator.environment)
    return translator


@cache
def _routers(path: Path, environment: tuple[tuple[str, str], ...]) -> Mapping[str, Router]:
    routes = load(path, dict(environment)).routes
    return {route.name: Router(route.dialect, [route]) for route in routes}
