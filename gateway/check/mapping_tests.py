"""Run the tests in a configuration: a message, and the copies that the routes make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gateway.check.given_headers import given_headers, is_property, jms_fields
from gateway.config.load import Configuration
from gateway.config.schema import ExpectedCopy, GivenMessage, MappingTest
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.model.message import Headers, Message
from gateway.routing.header_draft import MICROS_PER_SECOND
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
        "priority": of.priority, "ttl": ttl, "content_type": of.content_type,
        "correlation_id": of.correlation_id,
    }  # fmt: skip


def fields_text(reply_to: str | None, values: Mapping[str, object]) -> str:
    """Return the fields that are present, for the end of a line."""
    shown = {"reply_to": reply_to, **values}
    return "".join(f" {name}={value!r}" for name, value in shown.items() if value is not None)


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
    """Run every test of the configuration, in file order.

    Raises:
        GatewayError: the value of a JMS header is illegal.
    """
    return [_run(name, test, configuration) for name, test in configuration.tests.items()]


def _run(name: str, test: MappingTest, configuration: Configuration) -> MappingTestResult:
    try:
        copies = list(_copies(test.given, configuration))
        wanted = [(each, jms_fields(each.properties or {})) for each in test.expect]
    except GatewayError as error:
        raise GatewayError(f"test {name!r}: {error}") from error
    missing: list[ExpectedCopy] = []
    for expected, fields in wanted:
        met = next((copy for copy in copies if _meets(copy, expected, fields)), None)
        if met is None:
            missing.append(expected)
        else:
            copies.remove(met)
    return MappingTestResult(name, tuple(missing), tuple(copies))


def _copies(given: GivenMessage, configuration: Configuration) -> Iterator[ResultCopy]:
    routes = [each for each in configuration.routes if each.endpoint == given.endpoint]
    if not routes:
        return
    headers = _given(given, configuration.endpoints[given.endpoint].settings)
    message = Message(given.name, given.payload.encode(), headers)
    router = Router(routes[0].dialect, routes, configuration.dictionary)
    for match in router[given.name]:
        if _takes(match, headers):
            for delivery in match.deliveries:
                yield _copy(message, delivery, router, given.endpoint)


def _given(given: GivenMessage, settings: EndpointSettings) -> Headers:
    """Return the headers of the message, without those that its source does not carry."""
    ttl, found = given.ttl, header_values(given)
    found["expiry"] = None if ttl is None else NOW + round(ttl * MICROS_PER_SECOND)
    fields = {
        name: value
        for name, value in found.items()
        if value is not None and name in settings.carries
    }
    headers = replace(given_headers(given.properties, settings), reply_to=given.reply_to)
    return replace(headers, **fields)  # type: ignore[arg-type]  # fields of `header_values`


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


def _meets(copy: ResultCopy, expected: ExpectedCopy, fields: Mapping[str, object]) -> bool:
    """Return whether the copy is the expected one; `fields` are of the expected JMS headers."""
    if copy.endpoint != expected.endpoint:
        return False
    if copy.message is None or expected.refused is not None:
        return copy.message is None and copy.refused == expected.refused
    headers = copy.message.headers
    return (
        copy.message.address == expected.name
        and expected.payload in (None, _text(copy.message))
        and expected.reply_to in (None, headers.reply_to)
        and (
            expected.properties is None
            or {name: each for name, each in expected.properties.items() if is_property(name)}
            == dict(headers.properties)
        )
        and all(getattr(headers, name) == value for name, value in fields.items())
        and all(
            value in (None, actual)
            for value, actual in zip(
                header_values(expected).values(), header_values(headers).values(), strict=True
            )
        )
    )


def _text(message: Message) -> str:
    payload = message.payload
    return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(payload)
