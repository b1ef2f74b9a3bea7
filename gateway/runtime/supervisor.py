"""A configuration set to work: opens lanes, archive and pumps, and closes them in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gateway.archive.dictionary import NameFile, read_names
from gateway.archive.rolling import ArchiveOptions
from gateway.archive.writer import ArchiveWriter
from gateway.config.load import Configuration
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import find_kind, make_sink, make_source
from gateway.errors import ArchiveError
from gateway.model.language import covers
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.runtime.lane import Lane
from gateway.runtime.pump import Identities, Pump, Surroundings
from gateway.runtime.recording import now
from gateway.runtime.state import EndpointState, RouteCounters
from gateway.translate.names import Length
from gateway.translate.shorten import Shortened

log = logging.getLogger(__name__)
CLOSING = 2.0  # seconds kept for closing, of those a stop has
PAUSE = 0.02  # seconds between two looks at whether all is settled


class Gateway:
    """The running bridge; mutable, it owns every thread and connection of the process."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.counters = {route.name: RouteCounters() for route in configuration.routes}
        self.states: list[EndpointState] = []
        self._lanes: dict[str, Lane] = {}
        self._pumps: list[Pump] = []
        self._archive: ArchiveWriter | None = None
        self._names: NameFile | None = None

    def start(self) -> None:
        """Open the archive, then connect in the background; what is away is tried again.

        Raises:
            ArchiveError: the archive's folder cannot be written.
        """
        identities = Identities(now())
        if (archive := self.configuration.archive) is not None:
            options = ArchiveOptions(
                segment_bytes=archive.segment_bytes,
                segment_seconds=archive.segment_seconds,
                sync=archive.sync,
            )
            name = self.configuration.gateway.name
            root = Path(archive.path)
            self._archive = ArchiveWriter(root, name, identities.run, options)
            self._keep_names(root, name)
        for name in sorted({t.endpoint for r in self.configuration.routes for t in r.targets}):
            self._lanes[name] = self._make_lane(name)
        archive_rows = self._archive.append if self._archive else None
        name = self.configuration.gateway.name
        around = Surroundings(name, self._lanes, archive_rows, self.counters, identities)
        for name in sorted({route.endpoint for route in self.configuration.routes}):
            self._pumps.append(self._make_pump(name, around))
        for lane in self._lanes.values():
            lane.start()
        for pump in self._pumps:
            pump.start()

    def stop(self, seconds: float) -> bool:
        """Stop receiving, finish what is in hand within `seconds`, close everything.

        Returns whether all was settled; what was not is delivered again by its source.
        """
        deadline = time.monotonic() + seconds
        for pump in self._pumps:
            pump.stop_receiving()
        settled = _wait(lambda: all(pump.idle() for pump in self._pumps), deadline - CLOSING)
        _all_at_once([lane.stop for lane in self._lanes.values()])
        if self._archive is not None:
            try:
                self._archive.close(max(CLOSING, deadline - time.monotonic()))
            except ArchiveError as error:
                log.error("%s", error)  # noqa: TRY400  # the text says it all
                settled = False
        _all_at_once([pump.close for pump in self._pumps])
        if self._names is not None:
            self._names.close()
        return settled

    def _make_lane(self, name: str) -> Lane:
        settings = self.configuration.endpoints[name].settings
        return Lane(
            make_sink(settings),
            self._state(name, "sink"),
            system=settings.dialect,
            carries=settings.carries,
            backoff=(settings.backoff_min, settings.backoff_max),
        )

    def _make_pump(self, name: str, around: Surroundings) -> Pump:
        settings = self.configuration.endpoints[name].settings
        routes = [route for route in self.configuration.routes if route.endpoint == name]
        selector = ""
        if find_kind(settings).selects and routes[0].selector is not None:
            texts = {route.selector.text if route.selector else "" for route in routes}
            selector = texts.pop() if len(texts) == 1 else ""
        if selector:  # the broker evaluates it, as its own clients know it
            routes = [replace(route, selector=None) for route in routes]
        return Pump(
            make_source(settings, subscriptions(routes, selector)),
            self._state(name, "source"),
            (settings.backoff_min, settings.backoff_max),
            Router(routes[0].dialect, routes, self._dictionary_at(name)),
            around,
        )

    def _keep_names(self, root: Path, name: str) -> None:
        """Let shortened names outlive the process."""
        dictionary = self.configuration.dictionary
        if any(self._dictionary_at(each) is not None for each in self.configuration.endpoints):
            self._names = NameFile(root, name)
            dictionary.names |= read_names(root)
            dictionary.tell = self._names.write

    def _dictionary_at(self, name: str) -> Shortened | None:
        """The dictionary, when a route shortens names that it sends to the endpoint `name`."""
        shortens = any(
            target.endpoint == name and target.renderer.length is Length.SHORTEN
            for route in self.configuration.routes
            for target in route.targets
        )
        return self.configuration.dictionary if shortens else None

    def _state(self, name: str, side: str) -> EndpointState:
        state = EndpointState(name, side)
        self.states.append(state)
        return state


def subscriptions(routes: Sequence[Route], selector: str = "") -> list[Subscription]:
    """The fewest subscriptions that bring what the routes take.

    One that another covers is left out, because some brokers deliver a message once for each.
    """
    kept: list[Route] = []
    for route in routes:
        patterns = route.source.patterns
        if any(covers(other.source.patterns, patterns) for other in kept):
            continue
        kept = [each for each in kept if not covers(patterns, each.source.patterns)]
        kept.append(route)
    wanted = any(route.take_retained for route in routes)
    return [Subscription(route.source.subscription, not wanted, selector) for route in kept]


def _all_at_once(steps: Sequence[Callable[[], None]]) -> None:
    """Run all steps, each in a thread: closing one frozen connection takes a second or two."""
    threads = [threading.Thread(target=step) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _wait(done: Callable[[], bool], deadline: float) -> bool:
    tick = threading.Event()
    while not done():
        if time.monotonic() >= deadline:
            return False
        tick.wait(PAUSE)
    return True
