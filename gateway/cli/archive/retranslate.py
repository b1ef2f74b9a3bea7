"""What a configuration makes of a name, as the reconciliation asks; it travels to executors."""

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
    """Route, target label and name at the source -> the name at the target.

    Each process loads the configuration once, with the environment the command was started in.
    """

    path: Path
    environment: tuple[tuple[str, str], ...]

    def __call__(self, route: str, target: str, name: str) -> str:
        """The name, or in parentheses why there is none."""
        router = _routers(self.path, self.environment).get(route)
        if router is None:
            return "(no such route)"
        for way in router[name]:
            for hop in way.hops:
                if hop.label == target:
                    return hop.address or f"(refused: {hop.rule})"
                if way.route is None:
                    return f"(refused: {hop.rule})"
        return "(not taken)"


def retranslator(path: Path) -> Retranslator:
    """Of the configuration at `path`, which is read now to find what is wrong with it.

    Raises:
        ConfigErrors: the configuration is wrong.
    """
    made = Retranslator(path.resolve(), tuple(sorted(os.environ.items())))
    _routers(made.path, made.environment)
    return made


@cache
def _routers(path: Path, environment: tuple[tuple[str, str], ...]) -> Mapping[str, Router]:
    routes = load(path, dict(environment)).routes
    return {route.name: Router(route.dialect, [route]) for route in routes}
