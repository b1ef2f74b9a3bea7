"""Run the tests in a configuration: a message, and the copies that the routes make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.config.load import Configuration
from gateway.config.schema import ExpectedCopy, GivenMessage, MappingTest
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Headers, Message, Value
from gateway.routing.payload_conversion import convert_payload
from gateway.routing.router import Delivery, RouteMatch, Router

NOW = 1_700_000_000_000_000  # microseconds since 1970, the same at every run


@dataclass(frozen=True, slots=True)
class ResultCopy:
    """The message for one target, or the rule that refuses it."""

    endpoint: str
    message: Message | None
    refused: str = ""

    def __str__(self) -> str:
        if self.message is None:
            return f"{self.endpoint} refused ({self.refused})"
        payload, properties = self.message.payload, dict(self.message.headers.properties)
        shown = f"{self.endpoint} {self.message.address}"
        return (
            shown + (f" {payload!r}" if payload else "") + (f" {properties}" if properties else "")
        )


@dataclass(frozen=True, slots=True)
class MappingTestResult:
    """The result of a test: expectations without a copy, and copies without an expectation."""

    name: str
    missing: tuple[ExpectedCopy, ...]
    unexpected: tuple[ResultCopy, ...]

    @property
    def passed(self) -> bool:
        """Whether copies and expectations are the same."""
        return not self.missing and not self.unexpected


def run_tests(configuration: Configuration) -> list[MappingTestResult]:
    """Run every test of the configuration, in file order."""
    return [_run(name, test, configuration) for name, test in configuration.tests.items()]


def _run(name: str, test: MappingTest, configuration: Configuration) -> MappingTestResult:
    copies = list(_copies(test.given, configuration))
    missing: list[ExpectedCopy] = []
    for expected in test.expect:
        met = next((copy for copy in copies if _meets(copy, expected)), None)
        if met is None:
            missing.append(expected)
        else:
            copies.remove(met)
    return MappingTestResult(name, tuple(missing), tuple(copies))


def _copies(given: GivenMessage, configuration: Configuration) -> Iterator[ResultCopy]:
    routes = [each for each in configuration.routes if each.endpoint == given.endpoint]
    if not routes:
        return
    properties: dict[str, Value] = dict(given.properties)
    headers = Headers(properties=properties, reply_to=given.reply_to)
    message = Message(given.name, given.payload.encode(), headers)
    router = Router(routes[0].dialect, routes, configuration.dictionary)
    for match in router[given.name]:
        if _takes(match, headers):
            for delivery in match.deliveries:
                yield _copy(message, delivery, router, given.endpoint)


def _takes(match: RouteMatch, headers: Headers) -> bool:
    selector = match.route.selector if match.route is not None else None
    return selector is None or selector.matches(headers)


def _copy(message: Message, delivery: Delivery, router: Router, source: str) -> ResultCopy:
    """Return the copy of one delivery; a name refused before any route counts at its source."""
    if delivery.target is None or delivery.rule:
        return ResultCopy(
            delivery.target.endpoint if delivery.target else source, None, delivery.rule
        )
    endpoint = delivery.target.endpoint
    try:
        headers = delivery.rules.apply(message.headers, NOW)
        if headers.reply_to is not None:
            reply = delivery.target.reply_name(router.dialect, headers.reply_to)
            headers = replace(headers, reply_to=reply)
        payload = message.payload
        if delivery.target.conversion is not None:
            payload = convert_payload(payload, delivery.target.conversion)
    except (SubjectError, TranslationError) as error:
        return ResultCopy(endpoint, None, error.rule)
    return ResultCopy(endpoint, Message(delivery.address, payload, headers))


def _meets(copy: ResultCopy, expected: ExpectedCopy) -> bool:
    if copy.endpoint != expected.endpoint:
        return False
    if copy.message is None or expected.refused is not None:
        return copy.message is None and copy.refused == expected.refused
    headers = copy.message.headers
    return (
        copy.message.address == expected.name
        and expected.payload in (None, _text(copy.message))
        and expected.reply_to in (None, headers.reply_to)
        and expected.properties in (None, dict(headers.properties))
    )


def _text(message: Message) -> str:
    payload = message.payload
    return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(payload)
