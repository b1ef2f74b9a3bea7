"""Tests of a mapping, written beside it: given a message, all that the routes make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.config.load import Configuration
from gateway.config.schema import ExpectRef, GivenRef, TestRef
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Headers, Message, Value
from gateway.routing.payload import convert
from gateway.routing.router import Hop, Router, Way

NOW = 1_700_000_000_000_000  # microseconds; the same at every run


@dataclass(frozen=True, slots=True)
class Copy:
    """What one target gets, or why it gets nothing."""

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
class Verdict:
    """A test, the expectations nothing met, and the copies nothing expected."""

    name: str
    missing: tuple[ExpectRef, ...]
    unexpected: tuple[Copy, ...]

    @property
    def passed(self) -> bool:
        return not self.missing and not self.unexpected


def run_tests(configuration: Configuration) -> list[Verdict]:
    """One verdict for every test of the configuration, in file order."""
    return [_run(name, test, configuration) for name, test in configuration.tests.items()]


def _run(name: str, test: TestRef, configuration: Configuration) -> Verdict:
    copies = list(_copies(test.given, configuration))
    missing: list[ExpectRef] = []
    for expected in test.expect:
        met = next((copy for copy in copies if _meets(copy, expected)), None)
        if met is None:
            missing.append(expected)
        else:
            copies.remove(met)
    return Verdict(name, tuple(missing), tuple(copies))


def _copies(given: GivenRef, configuration: Configuration) -> Iterator[Copy]:
    routes = [each for each in configuration.routes if each.endpoint == given.endpoint]
    if not routes:
        return
    properties: dict[str, Value] = dict(given.properties)
    headers = Headers(properties=properties, reply_to=given.reply_to)
    message = Message(given.name, given.payload.encode(), headers)
    router = Router(routes[0].dialect, routes, configuration.dictionary)
    for way in router[given.name]:
        if _takes(way, headers):
            for hop in way.hops:
                yield _copy(message, hop, router, given.endpoint)


def _takes(way: Way, headers: Headers) -> bool:
    selector = way.route.selector if way.route is not None else None
    return selector is None or selector.matches(headers)


def _copy(message: Message, hop: Hop, router: Router, source: str) -> Copy:
    """What becomes of one hop; a name at fault before any route is refused at its source."""
    if hop.target is None or hop.rule:
        return Copy(hop.target.endpoint if hop.target else source, None, hop.rule)
    endpoint = hop.target.endpoint
    try:
        headers = hop.rules.apply(message.headers, NOW)
        if headers.reply_to is not None:
            reply = hop.target.reply_name(router.dialect, headers.reply_to)
            headers = replace(headers, reply_to=reply)
        payload = message.payload
        if hop.target.conversion is not None:
            payload = convert(payload, hop.target.conversion)
    except (SubjectError, TranslationError) as error:
        return Copy(endpoint, None, error.rule)
    return Copy(endpoint, Message(hop.address, payload, headers))


def _meets(copy: Copy, expected: ExpectRef) -> bool:
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
