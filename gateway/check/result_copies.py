"""The copies that the routes make of one message, without a running gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.config.load import Configuration
from gateway.config.schema import ExpectedCopy, GivenMessage
from gateway.errors import TranslationError
from gateway.model.message import NO_HEADERS, Headers, Message
from gateway.routing.carried_headers import map_reply, with_own
from gateway.routing.header_draft import MICROS_PER_SECOND
from gateway.routing.route import Route, Target
from gateway.routing.router import Delivery, Router

NOW = 1_700_000_000_000_000  # microseconds since 1970, the same at every run


@dataclass(frozen=True, slots=True)
class ResultCopy:
    """The message that one target gets, or the rule that refuses it.

    `lost` names the fields that the target cannot carry; the message has none of them.
    """

    endpoint: str
    message: Message | None
    refused: str = ""
    reason: str = ""
    target: Target | None = None
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.message is None:
            return f"{self.endpoint} refused ({self.refused})"
        payload, headers = self.message.payload, self.message.headers
        shown = f"{self.endpoint} {self.message.address}"
        shown += f" {payload!r}" if payload else ""
        shown += f" {dict(headers.properties)}" if headers.properties else ""
        return shown + fields_text(headers.reply_to, header_values(headers))


def header_values(of: GivenMessage | ExpectedCopy | Headers) -> dict[str, object]:
    """Return the header fields that a test states, None where one is absent; `ttl` in seconds."""
    if isinstance(of, Headers):
        ttl = None if of.expiry is None else (of.expiry - NOW) / MICROS_PER_SECOND
    else:
        ttl = of.ttl
    return {
        "priority": of.priority,
        "ttl": ttl,
        "content_type": of.content_type,
        "correlation_id": of.correlation_id,
        "retained": of.retained,
    }


def fields_text(reply_to: str | None, values: Mapping[str, object]) -> str:
    """Return the fields that are present, for the end of a line."""
    shown = {"reply_to": reply_to, **values}
    present = {name: each for name, each in shown.items() if each is not None and each is not False}
    return "".join(f" {name}={value!r}" for name, value in present.items())


def copies(
    routes: Sequence[Route], message: Message, configuration: Configuration
) -> Iterator[ResultCopy]:
    """Yield the copies that `routes`, all from one endpoint, make of a message there."""
    if not routes:
        return
    router = Router(routes[0].dialect, routes, configuration.dictionary)
    for match in router.match(message):
        selector = match.route.selector if match.route is not None else None
        if selector is None or selector.matches(message.headers):
            for delivery in match.deliveries:
                yield _copy(message, delivery, router, routes[0].endpoint, configuration)


def _copy(
    message: Message,
    delivery: Delivery,
    router: Router,
    source: str,
    configuration: Configuration,
) -> ResultCopy:
    """Return the copy of one delivery; a name refused before any route counts at its source."""
    target = delivery.target
    endpoint = target.endpoint if target else source
    if target is None or delivery.rule:
        return ResultCopy(endpoint, None, delivery.rule, delivery.reason, target)
    carries = configuration.endpoints[endpoint].settings.carries
    try:
        headers = delivery.rules.apply(message.headers, NOW)
        payload = message.payload
        if delivery.conversion is not None:
            payload = delivery.conversion.convert(payload)
    except TranslationError as error:
        return ResultCopy(endpoint, None, error.rule, str(error), target)
    headers, lost = map_reply(headers, target, router.dialect, carries)
    headers = headers.with_properties(with_own(headers.properties, delivery))
    headers = replace(headers, **{name: getattr(NO_HEADERS, name) for name in lost})
    made = Message(delivery.address, payload, headers)
    return ResultCopy(endpoint, made, target=target, lost=lost)
