"""A mapping tried inside this process: each endpoint is one of `kind: memory` with its dialect.

A trial touches nothing of its configuration: no broker, archive, spool, lease, port or secret.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Final

from gateway.archive.journal.records import Rows
from gateway.archive.schema import Leg
from gateway.check.examine import load_examined
from gateway.config.build_endpoint import Endpoint
from gateway.config.load import Configuration
from gateway.config.process import ArchiveSettings
from gateway.dialects.parts import has_empty_key
from gateway.endpoints.memory import MemoryBroker, drop_brokers, find_broker
from gateway.endpoints.settings.memory import MemorySettings
from gateway.errors import ConfigErrors, GatewayError
from gateway.model.message import Message
from gateway.routing.explain import explain, likely_endpoints
from gateway.routing.other_separator import separator_question
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.counters import ConnectionState
from gateway.terminal.units import counted

SETTLE_TIMEOUT: Final = 10.0  # seconds for what one message makes; a circle would have no end
STOP_SECONDS: Final = 60.0  # a busy machine converts the archive slowly
_POLL: Final = 0.005  # seconds
_OWN: Final = """\
gateway: {name: trial}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  ems: {kind: memory, dialect: ems, broker: ems}
  solace: {kind: memory, dialect: smf, broker: solace}
  nats: {kind: memory, dialect: nats, broker: nats}
  rabbitmq: {kind: memory, dialect: rabbitmq, broker: rabbitmq}
  ibm: {kind: memory, dialect: ibm, broker: ibm}
routes:
  everything:
    from: {endpoint: plant, pattern: "{rest...}"}
    to:
      - {endpoint: ems, template: "{rest...}", on_too_long: refuse}
      - {endpoint: solace, template: "{rest...}", on_too_long: refuse}
      - {endpoint: nats, template: "{rest...}", on_too_long: refuse}
      - {endpoint: rabbitmq, template: "{rest...}", on_too_long: refuse}
      - {endpoint: ibm, template: "{rest...}", on_too_long: refuse}
"""

Show = Callable[[str], None]


def tried(path: Path | None, folder: Path, *, archive: bool) -> Configuration:
    """Return the configuration at `path`, or one of five systems, with endpoints in this process.

    All that it writes is in `folder`.

    Raises:
        ConfigErrors: every error, of the file or of a proof.
    """
    if path is None:
        path = folder / "trial.yaml"
        path.write_text(_OWN, encoding="utf-8")
    found, findings = load_examined(path, without_secrets=True)
    if errors := [each for each in findings if each.severity == "error"]:
        raise ConfigErrors(errors)
    return replace(
        found,
        gateway=replace(found.gateway, instance="", path_key=None, previous_path_key=None),
        endpoints={
            name: _in_process(name, each, found.brokers) for name, each in found.endpoints.items()
        },
        routes=tuple(replace(route, heartbeat="") for route in found.routes),
        archive=ArchiveSettings(path=str(folder / "archive")) if archive else None,
        spool=None,
        web=None,
        tracing=None,
        standby=None,
        paths={},
    )


def _in_process(name: str, endpoint: Endpoint, brokers: Mapping[str, str]) -> Endpoint:
    """Return the endpoint at a broker of this process; endpoints of one broker share it."""
    settings = endpoint.settings
    here = MemorySettings(
        name=name,
        dialect=settings.dialect,
        broker=brokers[name],
        headers="properties" in settings.carries,
    )
    return replace(endpoint, settings=here, was="")


class Trial:
    """A running gateway without brokers, and what it makes of each message.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, configuration: Configuration, show: Show) -> None:
        self._configuration, self._show = configuration, show
        self._lock = Lock()
        self._arrivals = 0  # calls of `_arrived`
        self._gateway = Gateway(configuration, watch=self._recorded)
        self._brokers: dict[str, MemoryBroker] = {}  # by endpoint

    def start(self) -> None:
        """Start the gateway, and wait until each endpoint is connected.

        Raises:
            GatewayError: an endpoint is not.
        """
        for name, endpoint in self._configuration.endpoints.items():
            assert isinstance(endpoint.settings, MemorySettings)  # noqa: S101  # made so
            self._brokers[name] = find_broker(endpoint.settings)
            self._brokers[name].arrived = self._arrived
        self._gateway.start()
        states = self._gateway.states

        def connected() -> bool:
            return all(each.connection is ConnectionState.CONNECTED for each in states)

        if not _wait(connected):
            raise GatewayError(next(each.reason for each in states if each.reason))

    def stop(self) -> None:
        """Finish the messages in flight and close all files."""
        self._gateway.stop(STOP_SECONDS)

    def sources(self) -> list[str]:
        """Return a line for each source: its name, system and patterns."""
        return [
            f"{name} ({routes[0].dialect.name}) {', '.join(each.source.text for each in routes)}"
            for name, routes in self._routes().items()
        ]

    def send(self, line: str, endpoint: str | None = None) -> None:
        """Publish a line NAME PAYLOAD at its source, and wait until all it makes has an outcome.

        The source is `endpoint`, or the first one with a route that takes the name.

        Raises:
            GatewayError: there is no such source, or the message circles.
        """
        name, payload = parse_line(line)
        known = self._routes()
        if endpoint is not None and endpoint not in known:
            raise GatewayError(f"{endpoint!r} is no source; known are {', '.join(known)}")
        message = Message(name, payload.encode("utf-8", "surrogateescape"))
        for source in known if endpoint is None else (endpoint,):
            routes = known[source]
            if [*Router(routes[0].dialect, routes, self._configuration.dictionary)[name]]:
                self._publish(source, message)
                return
        self._show(f"{name}: no route takes it")
        every = self._configuration.routes
        results = explain(name, every, endpoint)
        likely = likely_endpoints(name, results, every)
        shown = [each for each in results if each.endpoint in likely]
        for each in shown or results:
            self._show(f"  {each.route}, from {each.endpoint}: {each.why_not}")
        if shown and (others := len(results) - len(shown)):
            self._show(f"  {counted(others, 'other route')}; gateway explain --all shows why not")
        if question := separator_question(name, (each for some in known.values() for each in some)):
            self._show(f"  {question}")

    def _publish(self, source: str, message: Message) -> None:
        self._show(f"{source} {message.address}")
        (answer,), shares = self._brokers[source].distribute([message])
        if answer.reason:  # a broker refuses an illegal name, so no source receives it
            self._show(f"  no message: {answer.reason}")
        for queue, share in shares.items():
            queue.put(share)
        if not _wait(self._is_quiet):
            raise GatewayError(
                f"{message.address!r} makes messages for longer than {SETTLE_TIMEOUT:g} s;"
                " gateway check names a route that circles"
            )

    def _is_quiet(self) -> bool:
        """Return whether every message is settled; one that moves between brokers counts."""
        before = self._arrivals
        quiet = all(each.is_quiet for each in self._brokers.values())
        return quiet and self._arrivals == before

    def _routes(self) -> dict[str, list[Route]]:
        """The routes of each source."""
        found: dict[str, list[Route]] = {}
        for route in self._configuration.routes:
            found.setdefault(route.endpoint, []).append(route)
        return found

    def _arrived(self, endpoint: str, messages: Sequence[Message]) -> None:
        with self._lock:
            self._arrivals += 1
            has_key = self._configuration.endpoints[endpoint].dialect.key is not None
            for message in messages:
                empty = has_key and has_empty_key(message.address)
                name = message.address + (" (an empty key)" if empty else "")
                self._show(f"  -> {endpoint} {name} {_text(message)}".rstrip())

    def _recorded(self, rows: Sequence[Rows]) -> None:
        """Show what has no copy: dead letters, and what a route leaves out."""
        with self._lock:
            for line in (each for some in rows for each in _not_sent(some)):
                self._show(line)


def parse_line(line: str) -> tuple[str, str]:
    """Return name and payload; a name with spaces is a JSON string.

    Raises:
        GatewayError: the name is not a JSON string.
    """
    if not line.startswith('"'):
        name, _, payload = line.partition(" ")
        return name, payload
    try:
        name, end = json.JSONDecoder().raw_decode(line)
    except ValueError as error:
        raise GatewayError(f'{line!r}: the name has no end; write "NAME" PAYLOAD') from error
    return name, line[end:].removeprefix(" ")


def _not_sent(rows: Rows) -> Iterator[str]:
    leg = rows.values("leg")[0] if rows.count else None
    if leg not in {Leg.DEAD.value, Leg.CUT.value}:
        return
    word = "dead letter" if leg == Leg.DEAD.value else "left out"
    columns = [rows.values(each) for each in ("target", "endpoint", "rule", "reason")]
    for target, endpoint, rule, reason in zip(*columns, strict=True):
        place = f"-> {target}" if target else f"at {endpoint}"
        yield f"  {place} {word}, rule {rule}" + (f": {reason}" if reason else "")


def _text(message: Message) -> str:
    payload = message.payload
    return (
        payload.decode("utf-8", "backslashreplace") if isinstance(payload, bytes) else str(payload)
    )


def _wait(done: Callable[[], bool]) -> bool:
    """Return whether `done` became true in time."""
    tick, deadline = Event(), time.monotonic() + SETTLE_TIMEOUT
    while not done():
        if time.monotonic() > deadline:
            return False
        tick.wait(_POLL)
    return True


@contextmanager
def running(configuration: Configuration, show: Show) -> Iterator[Trial]:
    """Run a trial, and end it with its brokers."""
    drop_brokers()
    trial = Trial(configuration, show)
    try:
        trial.start()
        yield trial
    finally:
        trial.stop()
        drop_brokers()
