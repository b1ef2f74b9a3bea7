"""Brokers whose limits of names are known, and dialects with the limits of an endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from gateway.dialects.dialect import Dialect
from gateway.dialects.name_limits import NameLimits, Refusals
from gateway.dialects.patterns import read_pattern
from gateway.dialects.registry import DIALECTS, find_dialect
from gateway.errors import GatewayError
from gateway.model.limits import Limit


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """A broker that takes fewer names than its system; `sources` state or show its limits.

    `hosts` matches its host names, where they tell it.
    """

    name: str
    title: str
    dialect: str
    limits: NameLimits
    sources: tuple[str, ...]
    hosts: re.Pattern[str] | None = None


_AWS_SDK = "https://aws.github.io/aws-iot-device-sdk-js-v2/node"
_KNOWN = (
    KnownBroker(
        "aws-iot",
        "AWS IoT Core",
        "mqtt",
        NameLimits(
            bytes=256,
            levels=8,
            forbidden_first_levels=("$*",),
            allowed_first_levels=("$aws",),  # its own services take these, each as documented
        ),
        (
            f"{_AWS_SDK}/enums/mqtt5.ClientExtendedValidationAndFlowControl.html",
            "https://docs.aws.amazon.com/iot/latest/developerguide/reserved-topics.html",
        ),
        re.compile(r"(.+\.)?iot\.[a-z0-9-]+\.amazonaws\.com(\.cn)?"),
    ),
    KnownBroker(
        "mosquitto",
        "Eclipse Mosquitto from 1.6.6 on",
        "mqtt",
        NameLimits(levels=201),  # it closes the connection at more than 200 slashes
        ("https://mosquitto.org/blog/2019/09/version-1-6-6-released/", "measured with 2.0.11"),
    ),
    KnownBroker(
        "nats-mqtt",
        "nats-server from 2.10 on, MQTT listener",
        "mqtt",
        NameLimits(forbidden_characters=" "),
        ("https://docs.nats.io/learn/mqtt/where-next",),
    ),
    KnownBroker(
        "nats-mqtt-2.9",
        "nats-server up to 2.9, MQTT listener",
        "mqtt",
        NameLimits(forbidden_characters=". "),
        ("https://github.com/nats-io/nats-server/pull/4243", "measured with 2.9.10"),
    ),
    KnownBroker(
        "rabbitmq-mqtt",
        "RabbitMQ, MQTT plugin",
        "mqtt",
        NameLimits(forbidden_characters=".*"),  # it delivers them as / and +
        ("https://www.rabbitmq.com/docs/mqtt", "measured with 3.10.8"),
    ),
)
BROKERS: Mapping[str, KnownBroker] = {each.name: each for each in _KNOWN}


def dialect_at(name: str) -> Dialect:
    """Return the dialect of a system or of a known broker.

    Raises:
        UnknownSystemError: neither has this name.
    """
    if (known := BROKERS.get(name)) is None:
        return find_dialect(name)
    return replace(with_limits(DIALECTS[known.dialect], known.limits), name=name)


@cache
def with_limits(dialect: Dialect, limits: NameLimits) -> Dialect:
    """Return `dialect` for an endpoint with these limits; a limit of the system is never raised.

    Names of the broker itself (`server_levels`) are refused at every endpoint. Equal calls return
    one object, as proofs compare dialects by identity.

    Raises:
        GatewayError: a forbidden character is the separator; a maximum is below 1.
        SubjectError: a forbidden pattern is not a subscription of the dialect.
    """
    if dialect.separator in limits.forbidden_characters:
        reason = f"`forbidden_characters` has the separator {dialect.separator!r}; set `levels: 1`"
        raise GatewayError(f"{dialect.name}: {reason}")
    maxima = [Limit(unit, most, "the endpoint's settings") for unit, most in limits.maxima.items()]
    if any(limit.maximum < 1 for limit in maxima):
        raise GatewayError(f"{dialect.name}: a limit of names is below 1")
    patterns = [
        (text, pattern)
        for text in limits.forbidden_patterns
        for pattern in read_pattern(text, dialect)
    ]
    refusals = Refusals(limits, dialect.server_levels, tuple(patterns))
    if refusals == Refusals(NameLimits()):
        return dialect
    return replace(dialect, limits=(*dialect.limits, *maxima), refusals=refusals)
