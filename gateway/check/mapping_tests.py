"""Run the tests in a configuration: a message, and the copies that the routes make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.check.given_headers import given_headers, is_property, jms_fields
from gateway.check.result_copies import NOW, ResultCopy, copies, header_values
from gateway.config.load import Configuration
from gateway.config.schema import ExpectedCopy, GivenMessage, MappingTest
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError
from gateway.model.message import Message
from gateway.routing.header_draft import MICROS_PER_SECOND


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
        settings = configuration.endpoints[test.given.endpoint].settings
        routes = [each for each in configuration.routes if each.endpoint == test.given.endpoint]
        found = list(copies(routes, _given(test.given, settings), configuration))
        wanted = [(each, jms_fields(each.properties or {})) for each in test.expect]
    except GatewayError as error:
        raise GatewayError(f"test {name!r}: {error}") from error
    missing: list[ExpectedCopy] = []
    for expected, fields in wanted:
        met = next((copy for copy in found if _meets(copy, expected, fields)), None)
        if met is None:
            missing.append(expected)
        else:
            found.remove(met)
    return MappingTestResult(name, tuple(missing), tuple(found))


def _given(given: GivenMessage, settings: EndpointSettings) -> Message:
    """Return the message, without the headers that its source does not carry."""
    ttl, found = given.ttl, header_values(given)
    found["expiry"] = None if ttl is None else NOW + round(ttl * MICROS_PER_SECOND)
    found["reply_to"] = given.reply_to
    fields = {
        name: value
        for name, value in found.items()
        if value is not None and name in settings.carries
    }
    headers = given_headers(given.properties, settings)
    headers = replace(headers, **fields)  # type: ignore[arg-type]  # fields of `header_values`
    return Message(given.name, given.payload.encode(), headers)


def _meets(copy: ResultCopy, expected: ExpectedCopy, fields: Mapping[str, object]) -> bool:
    """Return whether the copy is the expected one; `fields` are of the expected JMS headers."""
    if copy.endpoint != expected.endpoint:
        return False
    if copy.message is None or expected.refused is not None:
        return copy.message is None and copy.refused == expected.refused
    headers = copy.message.headers
    actual, wanted = header_values(headers), expected.properties
    properties = {name: each for name, each in (wanted or {}).items() if is_property(name)}
    return (
        copy.message.address == expected.name
        and expected.payload in (None, _text(copy.message))
        and expected.reply_to in (None, headers.reply_to)
        and (wanted is None or properties == dict(headers.properties))
        and all(getattr(headers, name) == value for name, value in fields.items())
        and all(each in (None, actual[name]) for name, each in header_values(expected).items())
    )


def _text(message: Message) -> str:
    payload = message.payload
    return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(payload)
