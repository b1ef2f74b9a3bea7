"""Sends messages to endpoints and rows to the archive, for a command beside the gateway."""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from gateway.archive.durable import make_folders
from gateway.archive.journal.records import Cell, Rows
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journal_folder, lock_path, writer_name
from gateway.archive.schema import Leg, RowOutcome
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.endpoints.base import Sink
from gateway.errors import ArchiveError, GatewayError
from gateway.file_lock import FileLock
from gateway.model.copy_proof import HOPS, content_digest, render_proof
from gateway.model.message import Message
from gateway.model.outcome import RETRY, Outcome, Settlement
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch, Router
from gateway.runtime.archive_setup import (
    archive_location,
    archive_options,
    archive_routes,
    open_name_store,
    replay_mark,
)
from gateway.runtime.delivery.expiry import without_expired
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.endpoint_uses import dictionary_for
from gateway.runtime.identity import gateway_identity
from gateway.runtime.inbound.copy_maker import HeaderMapper, with_ids
from gateway.runtime.record.counters import RouteCounters
from gateway.runtime.wiring import keyed_sink, path_rules

_ID_SIZE: Final = 16  # bytes
SEND_MESSAGES: Final = 200  # in one send
_CONFLICT: Final = "another replay of this gateway is running; wait for its end"
ANSWER_TIMEOUT: Final = 60.0  # seconds for the answers to one send, or for the archive


@contextmanager
def archived_names(configuration: Configuration) -> Iterator[None]:
    """Read the short names of the archive, and add those that are sent meanwhile.

    Raises:
        ArchiveError: the folder of the names cannot be written.
    """
    archive, writer = configuration.archive, configuration.gateway.writer
    store = None if archive is None else open_name_store(configuration, archive, writer)
    with nullcontext() if store is None else closing(store):
        yield


@contextmanager
def one_replay(configuration: Configuration) -> Iterator[None]:
    """Be the one command that replays for a gateway: what others delivered is in the archive.

    Raises:
        ArchiveError: another one runs, or the folder of the journals cannot be written.
    """
    if (archive := configuration.archive) is None:
        yield
        return
    root, settings = archive_location(archive).local, configuration.gateway
    writer = writer_name(settings.name, settings.instance, replay=True)
    try:
        make_folders(journal_folder(root))
        lock = FileLock(lock_path(root, f"{writer}s"), _CONFLICT)
    except OSError as error:
        raise ArchiveError(f"archive {error}") from error
    with lock:
        yield


def convert_killed_replays(configuration: Configuration) -> None:
    """Convert the journals of replays that were killed, so that their deliveries are known."""
    from gateway.night.archive.open_archive import opened_at  # noqa: PLC0415  # Arrow
    from gateway.night.archive.segments.convert import convert_abandoned  # noqa: PLC0415

    if configuration.archive is not None:
        key = archive_options(configuration.archive).seal_key
        convert_abandoned(opened_at(archive_location(configuration.archive), key))


def delivered_row(message: Message, *, converted: bool, **columns: Cell) -> Rows:
    """Return the row of a copy that a target has now; `columns` are those of its message."""
    size, digest = fingerprint(message.payload)
    common: dict[str, Cell] = {
        "leg": Leg.DELIVERED.value,
        "name": message.address,
        "time": now(),
        "mode": int(message.headers.mode),
        "replayed": True,
        "size": size,
        "hash": digest,
        "outcome": (RowOutcome.CONVERTED if converted else RowOutcome.ACCEPTED).value,
    }
    return Rows(1, common | columns)


class ReplaySender:
    """The routers, sinks and archive writer of one command; made on first use.

    `purpose` distinguishes its connections from those of the gateway.
    Mutable: owned by one thread.
    """

    def __init__(self, configuration: Configuration, purpose: str, routes: Iterable[Route]) -> None:
        self._configuration = configuration
        self._purpose = purpose
        self._identity = gateway_identity(configuration)
        self._path_rules = path_rules(configuration)
        self._routes = defaultdict[str, list[Route]](list)
        for each in routes:
            self._routes[each.endpoint].append(each)
        self._routers: dict[str, Router] = {}
        self._header_mappers: dict[str, HeaderMapper] = {}
        self._sinks: dict[str, Sink] = {}
        self._writer: ArchiveWriter | None = None
        self._mark, self._is_marked = replay_mark(configuration), False

    def matches(self, source: str, message: Message) -> Sequence[RouteMatch]:
        """The matches of a message at the endpoint `source`, also of refused copies."""
        return self._router(source).match(message) if source in self._routes else ()

    def make(
        self,
        message: Message,
        delivery: Delivery,
        source: str,
        message_id: bytes,
        trace: bytes | None = None,
    ) -> Message:
        """The target's copy of a message from the endpoint `source`, for one of its matches.

        Raises:
            TranslationError: the mapping or a rule of the target refuses the message.
        """
        target, route = delivery.target, delivery.route
        if target is None or route is None:
            return message
        carries = self._configuration.endpoints[target.endpoint].settings.carries
        headers = self._header_mappers[source].map_headers(message.headers, delivery, carries)
        payload = message.payload
        if delivery.conversion is not None:
            payload = delivery.conversion.convert(payload)
        proof = ""
        if "origin" in carries:
            own, name, payload_hash = (
                secrets.token_hex(_ID_SIZE),
                delivery.wire_name,
                fingerprint(payload)[1],
            )
            proof = render_proof((own, own, HOPS[1], content_digest(name + payload_hash)))
            proof = self._path_rules.sign(proof, name, payload_hash, headers)
        if target.add_message_id:
            headers = with_ids(headers, message, source, message_id, trace=trace)
        return Message(delivery.address, payload, headers, proof)

    def send(self, endpoint: str, messages: Sequence[Message]) -> Sequence[Settlement]:
        """The settlements of `endpoint`; RETRY for each message if it does not answer.

        Raises:
            ArchiveError: the archive is not writable, so that nothing was sent.
            SpoolError: the mark of replays is not writable, so that nothing was sent.
        """
        if not messages:
            return []
        self._open_archive()
        self._configuration.dictionary.commit()
        wanted, complete = without_expired(endpoint, messages, now())
        if not wanted and complete is not None:
            return complete(())
        answered = threading.Event()
        answers: list[Settlement] = []

        def settled(settlements: Sequence[Settlement]) -> None:
            answers.extend(settlements if complete is None else complete(settlements))
            answered.set()

        if not self._is_marked:
            self._mark.begin()
            self._is_marked = True
        try:
            self._sink(endpoint).send(wanted, settled)
        except GatewayError as error:
            return [Settlement(Outcome.RETRY, reason=str(error))] * len(messages)
        answered.wait(ANSWER_TIMEOUT)
        return answers or [RETRY] * len(messages)

    def record(self, rows: Sequence[Rows]) -> None:
        """Write the rows to the archive, if there is one, and wait until they are durable.

        Raises:
            ArchiveError: the archive is not writable, or does not answer.
        """
        if not rows or (writer := self._open_archive()) is None:
            return
        durable = threading.Event()
        writer.append(rows, durable.set)
        if not durable.wait(ANSWER_TIMEOUT):
            text = f"{self._purpose}: the archive does not answer"
            raise writer.failure or ArchiveError(text)

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()
        if self._is_marked:
            self._mark.end()
        if self._writer is not None:
            self._writer.close()

    def _router(self, source: str) -> Router:
        if source not in self._routers:
            configuration, routes = self._configuration, self._routes[source]
            dictionary = dictionary_for(configuration, source)
            router = Router(routes[0].dialect, routes, dictionary, self._identity)
            counters = {each.name: RouteCounters() for each in routes}
            mapper = HeaderMapper(self._identity, router.dialect, counters)
            self._routers[source], self._header_mappers[source] = router, mapper
        return self._routers[source]

    def _open_archive(self) -> ArchiveWriter | None:
        """The archive writer, opened before the first message is sent; None without an archive."""
        archive = self._configuration.archive
        if self._writer is None and archive is not None:
            settings, options = self._configuration.gateway, archive_options(archive)
            name, instance = settings.name, settings.instance
            location = archive_location(archive)
            start, routes = now(), self._configuration.routes
            self._writer = ArchiveWriter(
                location, name, start, options, instance=instance, replay=True
            )
            archive_routes(archive, writer_name(name, instance, replay=True), routes, start)
        return self._writer

    def _sink(self, endpoint: str) -> Sink:
        if endpoint not in self._sinks:
            sink = keyed_sink(self._configuration, endpoint, self._identity, self._purpose)
            sink.open()
            self._sinks[endpoint] = sink
        return self._sinks[endpoint]


def without_past_expiry(message: Message) -> Message:
    """Remove an expiry in the past: who sends a message again wants it to arrive."""
    expiry = message.headers.expiry
    if expiry is None or expiry > now():
        return message
    return replace(message, headers=replace(message.headers, expiry=None))
