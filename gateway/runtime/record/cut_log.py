"""The log lines about the messages that routes cut: one a minute for each route and rule.

A message whose property proves no name, and that no other route takes, counts as one with the rule
UNPROVEN_NAME.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from gateway.model.dead_letter_rule import LOOP
from gateway.runtime.delivery.admission import DUPLICATE
from gateway.runtime.delivery.loop_limit import LOOP_LIMIT

log = logging.getLogger(__name__)

UNPROVEN_NAME: Final = "unproven-name"  # of no row
# The mapping itself asks for other cuts.
SAID: Final = frozenset({LOOP, LOOP_LIMIT, DUPLICATE, UNPROVEN_NAME})
LOG_INTERVAL: Final = 60.0  # seconds between two lines about one route and rule


class CutLog:
    """Counts the cuts of the routes of one source, until a line says them.

    Mutable: owned by the source's thread. Units: seconds of a monotonic clock.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self.two_way: Collection[str] = ()  # routes that receive the echoes of their reverse route
        self.waiting: dict[tuple[str, str], tuple[int, str]] = {}  # not said: number, example name
        self._said: dict[tuple[str, str], float] = {}

    def count(self, cuts: Iterable[tuple[str, str, str]]) -> None:
        """Count cut messages, each with route, rule and name."""
        for route, rule, name in cuts:
            if rule not in SAID:
                continue
            number, example = self.waiting.get((route, rule), (0, name))
            self.waiting[route, rule] = number + 1, example

    def say(self, now: float, *, at_end: bool = False) -> None:
        """Log the counts that are due, or all of them `at_end`."""
        self._said = {key: at for key, at in self._said.items() if now - at < LOG_INTERVAL}
        for key in [key for key in self.waiting if at_end or key not in self._said]:
            self._said[key] = now
            self._log(*key, *self.waiting.pop(key))

    def _log(self, route: str, rule: str, number: int, example: str) -> None:
        """The echoes of a route in both directions, and duplicates, are usual."""
        usual = rule == DUPLICATE or (rule == LOOP and route in self.two_way)
        if rule == UNPROVEN_NAME:
            log.warning(
                "route %r did not take %d %s whose property 'gateway_name' it did not prove, and"
                " no other route did since the last such line, for example %r",
                route,
                number,
                "message" if number == 1 else "messages",
                example,
                extra={"endpoint": self._endpoint},
            )
            return
        log.log(
            logging.INFO if usual else logging.WARNING,
            "route %r cut %d %s with the rule %r since the last such line, for example %r",
            route,
            number,
            "message" if number == 1 else "messages",
            rule,
            example,
            extra={"endpoint": self._endpoint},
        )
