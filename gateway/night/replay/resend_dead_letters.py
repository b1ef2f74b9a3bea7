"""Sends dead letters again and records the delivered ones, beside a running gateway."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Final

from gateway.archive.journal.records import Rows
from gateway.config.load import Configuration
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import MESSAGE_BYTES, NO_ENDPOINT, NO_ROUTE, UNSELECTED
from gateway.model.message import DroppedPayload, Message
from gateway.model.outcome import Outcome, Settlement, rejected
from gateway.night.replay.replay_archive import Targets
from gateway.night.replay.sender import (
    SEND_MESSAGES,
    ReplaySender,
    convert_killed_replays,
    delivered_row,
    without_past_expiry,
)
from gateway.routing.router import Delivery
from gateway.runtime.archive_setup import archive_location
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.outbound.dead_letters import remove_sent
from gateway.tracing.context import trace_of

RECOVERED: Final = Settlement(Outcome.ACCEPTED, reason="an earlier replay delivered it")


@dataclass(frozen=True, slots=True)
class ResendAttempt:
    """One copy of a dead letter, with its endpoint; `settlement` is set if it is not sent."""

    letter: DeadLetter
    endpoint: str
    message: Message
    settlement: Settlement | None = None
    fields: str = ""  # those of the message in its name


class Resend:
    """Sends dead letters again and deletes those that were delivered.

    Mutable: owned by one thread; holds open sinks until `close`.
    """

    def __init__(self, configuration: Configuration, database: sqlite3.Connection) -> None:
        self._configuration = configuration
        self._database = database
        self._sender = ReplaySender(configuration, "resend", configuration.routes)
        self._outstanding: Counter[int] = Counter()  # undelivered copies by letter number

    def plan(self, letters: Iterable[DeadLetter]) -> Iterator[ResendAttempt]:
        """The copies to send.

        A message that a target rejected goes to this target unchanged. A message that was not
        translated goes through the current mapping. A copy that an earlier replay delivered is
        RECOVERED.
        """
        chosen = list(letters)
        recovered = self._recovered(chosen)
        for letter in chosen:
            if letter.target in recovered.get(letter.route, {}).get(letter.id, ()):
                yield ResendAttempt(letter, letter.endpoint, letter.message, RECOVERED)
            elif isinstance(letter.message.payload, DroppedPayload):
                refused = rejected(MESSAGE_BYTES, "its payload was not kept")
                yield ResendAttempt(letter, letter.endpoint, letter.message, refused)
            elif letter.endpoint:
                yield self._unchanged(letter)
            else:
                yield from self._translated(letter)

    def send(self, attempts: Sequence[ResendAttempt]) -> Iterator[tuple[ResendAttempt, Settlement]]:
        """Send the attempts and yield their settlements; delivered letters are deleted before."""
        self._outstanding = Counter(each.letter.number for each in attempts)
        for endpoint, group in groupby(attempts, key=lambda each: each.endpoint):
            while part := list(islice(group, SEND_MESSAGES)):
                messages = [each.message for each in part if not each.settlement]
                answers = iter(self._sender.send(endpoint, messages))
                answered = [(each, each.settlement or next(answers)) for each in part]
                self._record(answered)
                yield from answered

    def close(self) -> None:
        self._sender.close()

    def _recovered(self, letters: Sequence[DeadLetter]) -> dict[str, Targets]:
        """Return the copies that earlier replays delivered, by route."""
        from gateway.archive.storage import open_storage  # noqa: PLC0415
        from gateway.night.archive.lookup.search import replayed_copies  # noqa: PLC0415  # Arrow

        archive = self._configuration.archive
        if archive is None or not letters:
            return {}
        convert_killed_replays(self._configuration)
        storage, since = open_storage(archive_location(archive)), min(each.time for each in letters)
        routes = {each.route for each in letters if each.target}
        return {route: replayed_copies(storage, route, since) for route in routes}

    def _unchanged(self, letter: DeadLetter) -> ResendAttempt:
        endpoint = self._configuration.present_name(letter.endpoint)
        if endpoint in self._configuration.endpoints:
            return ResendAttempt(
                letter, endpoint, without_past_expiry(letter.message), fields=letter.fields
            )
        reason = f"the configuration has no endpoint {letter.endpoint!r} any more"
        return ResendAttempt(letter, letter.endpoint, letter.message, rejected(NO_ENDPOINT, reason))

    def _translated(self, letter: DeadLetter) -> Iterator[ResendAttempt]:
        deliveries = [each for each in self._deliveries(letter) if each.target is not None]
        if not deliveries:
            reason = "no route of the configuration takes it to that target"
            yield ResendAttempt(letter, "", letter.message, rejected(NO_ROUTE, reason))
        for delivery in deliveries:
            yield self._attempt(letter, delivery)

    def _attempt(self, letter: DeadLetter, delivery: Delivery) -> ResendAttempt:
        target, route = delivery.target, delivery.route
        if target is None or delivery.rule:
            refusal = rejected(delivery.rule, delivery.reason)
            return ResendAttempt(letter, "", letter.message, refusal)
        if route and route.selector and not route.selector.matches(letter.message.headers):
            refusal = rejected(UNSELECTED, "the selector of the route still leaves it out")
            return ResendAttempt(letter, "", letter.message, refusal)
        try:
            original = without_past_expiry(letter.message)
            source = self._configuration.present_name(letter.source)
            message = self._sender.make(original, delivery, source, letter.id)
        except TranslationError as error:
            return ResendAttempt(letter, "", letter.message, rejected(error.rule, str(error)))
        label = letter.target or delivery.label  # of an earlier name, as on its other rows
        letter = replace(letter, route=route.name if route else letter.route, target=label)
        return ResendAttempt(letter, target.endpoint, message, fields=delivery.fields)

    def _deliveries(self, letter: DeadLetter) -> list[Delivery]:
        """The deliveries to the letter's target; to all targets if no route took it before."""
        source = self._configuration.present_name(letter.source)
        label = self._configuration.present_label(letter.target)
        original = replace(letter.message, address=letter.source_name)
        return [
            delivery
            for match in self._sender.matches(source, original)
            for delivery in match.deliveries
            if not letter.route
            or (match.route and match.route.name == letter.route and delivery.label == label)
        ]

    def _record(self, answered: Sequence[tuple[ResendAttempt, Settlement]]) -> None:
        """Record the delivered letters, then delete them: a crash in between gives a duplicate."""
        delivered = [each for each, answer in answered if answer.outcome is Outcome.ACCEPTED]
        self._sender.record([self._row(each) for each in delivered if each.settlement is None])
        self._outstanding.subtract(each.letter.number for each in delivered)
        numbers = dict.fromkeys(each.letter.number for each in delivered)
        done = [number for number in numbers if not self._outstanding[number]]  # every copy is
        if done:
            remove_sent(self._database, done)

    def _is_converted(self, letter: DeadLetter) -> bool:
        """Return whether the target of a letter gets a converted payload."""
        return any(
            target.conversion is not None
            for route in self._configuration.routes
            if route.name == letter.route
            for target in route.targets
            if target.label == self._configuration.present_label(letter.target)
        )

    def _row(self, attempt: ResendAttempt) -> Rows:
        letter = attempt.letter
        trace = trace_of(attempt.message.headers.properties)
        return delivered_row(
            attempt.message,
            converted=self._is_converted(letter),
            route=letter.route,
            endpoint=attempt.endpoint,
            system=self._configuration.endpoints[attempt.endpoint].settings.dialect,
            target=letter.target,
            source_name=letter.source_name,
            fields=attempt.fields or None,
            id=letter.id,
            trace=None if trace == letter.id else trace,
            attempt=letter.attempts + 1,
            received=letter.time,
        )
