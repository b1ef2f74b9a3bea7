"""`gateway connect CONFIG`: open every endpoint once and print what its broker answers.

It sends and subscribes nothing, and shows addresses as they are: a value of `${env:HOST}` is no
secret here. A password is printed as ***, as in the log. It asks NATS which streams have the
subjects of the targets, Kafka whether their topics exist and have the partitions that routes name,
and RabbitMQ whether the exchange is there. Exit status: 0 every broker accepts the connection and
has these streams, topics and partitions, 1 not all do.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from gateway.cli.parsers import CONFIG, CommandParser
from gateway.config.load import Configuration, load
from gateway.endpoints.base import (
    AnswersForNames,
    AnswersForPartitions,
    NamesAnswer,
    address_of,
)
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.base import EndpointSettings, Server
from gateway.endpoints.tls import describe_certificate
from gateway.errors import GatewayError, TranslationError
from gateway.logs.redaction import redactor_of
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.terminal.text import print_words
from gateway.translate.subscriptions import pattern_texts


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)


def run(args: argparse.Namespace) -> int:
    """Print one line for each endpoint, in the order of the file."""
    configuration = load(args.config)
    refused, redactor = 0, redactor_of(configuration)
    asked = _asked_of_targets(configuration)
    for name, endpoint in configuration.endpoints.items():
        try:
            answers = _open(endpoint.settings, asked.get(name, {}))
        except GatewayError as error:
            answers = [NamesAnswer(str(error).removeprefix(f"{name}: "), missing=True)]
        for each in answers:
            refused += each.missing
            print_words(f"{name}: {redactor.redact(each.text)}")
    return int(refused > 0)


def _asked_of_targets(configuration: Configuration) -> dict[str, dict[str, set[int]]]:
    """Return the patterns of the names that routes send to each endpoint.

    Each has the numbers of the partitions that routes choose for it.
    """
    found: dict[str, dict[str, set[int]]] = {}
    for flow in extract_flows(configuration.routes, configuration.brokers)[1]:
        target = flow.target
        known = found.setdefault(target.endpoint, {})
        with suppress(TranslationError):  # a cover too long to be asked about
            for text in pattern_texts(flow.target_pattern, target.renderer.dialect):
                chosen = known.setdefault(text, set())
                if isinstance(target.partition, int):
                    chosen.add(target.partition)
    return found


def _open(settings: EndpointSettings, asked: Mapping[str, Collection[int]]) -> list[NamesAnswer]:
    """Open the sending side, which needs no subscription, with a client id of its own.

    Return the text about its connection, and what its broker says of the names.

    Raises:
        EndpointError: the broker does not answer or refuses, or its driver is absent.
    """
    begun = monotonic()
    sink = make_sink(settings, instance="connect")
    try:
        sink.open()
        seconds = monotonic() - begun
        address = address_of(sink)
        answers = [*sink.ask_about([*asked])] if isinstance(sink, AnswersForNames) else []
        if isinstance(sink, AnswersForPartitions):
            chosen = [(text, number) for text, numbers in asked.items() for number in numbers]
            answers += sink.ask_about_partitions(chosen)
    finally:
        sink.close()
    servers = [*settings.servers()]
    if not address and len(servers) == 1 and servers[0].port is not None:
        host = servers[0].host
        address = f"[{host}]:{servers[0].port}" if ":" in host else f"{host}:{servers[0].port}"
    tls = _certificate(settings, servers, address)
    shown = address or settings.broker_key
    facts = (f"connected to {shown} ({seconds:.1f} s)", settings.way, tls)
    return [NamesAnswer("; ".join(filter(None, facts))), *answers]


def _certificate(settings: EndpointSettings, servers: Sequence[Server], address: str) -> str:
    """Return what the server at `address` shows of itself; empty without TLS, or a port."""
    host, _, port = address.rpartition(":")
    for each in servers:
        if each.host == host.strip("[]") and port in {str(each.port), ""}:
            return describe_certificate(settings, each)
    return ""
