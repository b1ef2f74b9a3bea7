"""Shovels of RabbitMQ's definitions become routes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.check.examine import examine
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import GatewayError
from gateway.imports.document import Document, render
from gateway.imports.rabbitmq.importer import import_rabbitmq
from gateway.imports.source_lines import LineStatus
from tests.imports.imported import loaded, sample, settings_of

ENDS = {"src-uri": "amqp://", "dest-uri": "amqp://hub", "src-queue": "in", "dest-queue": "out"}


def imported(value: object, **sections: object) -> Document:
    shovel = {"component": "shovel", "name": "s", "vhost": "/", "value": value}
    text = json.dumps({"parameters": [shovel], **sections})
    return import_rabbitmq("d.json", text.encode())


def lost(document: Document) -> list[str]:
    return [f"{each.item}; {each.reason}" for each in document.lines(LineStatus.NOT_CARRIED_OVER)]


def test_the_sample_becomes_a_configuration_that_passes_the_check(tmp_path: Path) -> None:
    document = import_rabbitmq(*sample("definitions.json"))

    configuration = loaded(document, tmp_path)
    assert [each for each in examine(configuration) if each.severity != "note"] == []
    orders = settings_of(configuration, "orders-target", RabbitmqSettings)
    assert (orders.url, orders.heartbeat) == ("amqps://hub.example.com/orders", 30)
    assert orders.tls is not None
    assert orders.tls.ca_file == "/etc/hub.pem"
    readings = settings_of(configuration, "readings-target", RabbitmqSettings)
    assert readings.urls == ("amqp://a.example.com/", "amqp://b.example.com:5673/")
    assert readings.exchange == "readings"
    assert settings_of(configuration, "readings-source", RabbitmqSettings).receive_window == 50
    assert [(each.pattern, each.targets[0].template) for each in document.live_routes] == [
        ("queue:out", "queue:orders"),
        ("plant.{w1}.{rest...}", "plant.{w1}.{rest...}"),
    ]
    assert [each.partition(";")[0] for each in lost(document)] == [
        "parameter 'auth_mechanism' of a URI of shovel 'orders'",
        "'dest-add-forward-headers' of shovel 'readings'",
        "federation-upstream 'north'",
        "policy 'federate'",
    ]


def test_no_password_is_repeated() -> None:
    document = import_rabbitmq(*sample("definitions.json"))

    text = render(document) + "\n".join(map(str, document.omitted))
    assert "s3cret" not in text
    assert "F4B5avzc" not in text
    assert "password: ${env:ORDERS_TARGET_PASSWORD}" in text


ROUTES = [
    pytest.param({}, "queue:in", "queue:out", False, id="queue-to-queue"),
    pytest.param({"src-queue": "a b/é"}, "queue:a b/é", "queue:out", False, id="any-name"),
    pytest.param(
        {"dest-queue": None, "dest-exchange": "e", "dest-exchange-key": "k.l"},
        "queue:in", "k.l", False, id="queue-to-key",
    ),
    pytest.param(
        {"src-queue": None, "src-exchange": "e", "src-exchange-key": "a.*.b.#"},
        "a.{w1}.b.{rest...}", "queue:out", True, id="keys-to-queue",
    ),
    pytest.param(
        {"src-queue": None, "src-exchange": "news", "dest-queue": None},
        "{rest...}", "{rest...}", False, id="fanout-keeps-keys",
    ),
    pytest.param(
        {"dest-uri": "amqp://", "src-queue": None, "dest-queue": None, "src-exchange": "amq.topic",
         "src-exchange-key": "a.#", "dest-exchange": "e"},
        "a.{rest...}", "a.{rest...}", False, id="between-exchanges-of-one-server",
    ),
    pytest.param(
        {"src-queue": None, "src-exchange": "amq.direct", "src-exchange-key": "k"},
        "k", "queue:out", False, id="direct",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "pattern", "template", "lossy"), ROUTES)
def test_a_shovel_becomes_a_route(
    tmp_path: Path, value: dict[str, object], pattern: str, template: str, lossy: bool
) -> None:
    document = imported({**ENDS, **value}, exchanges=[{"name": "news", "type": "fanout"}])

    (route,) = document.live_routes
    (target,) = route.targets
    assert (route.pattern, target.template, target.lossy) == (pattern, template, lossy)
    assert lost(document) == []
    assert loaded(document, tmp_path).routes


REFUSED = [
    pytest.param({"src-protocol": "mqtt"}, "is none of amqp091, local, amqp10", id="protocol"),
    pytest.param({"src-protocol": "amqp10"}, "its src-address is no text", id="no-address"),
    pytest.param(
        {"dest-protocol": "amqp10", "dest-address": "/exchanges/e"},
        "write `queue: in` at the endpoint",
        id="exchange-of-1.0-without-a-key",
    ),
    pytest.param({"dest-uri": []}, "its dest-uri is no URI", id="no-uri"),
    pytest.param({"dest-uri": "http://h/x"}, "does not read amqp://HOST", id="other-uri"),
    pytest.param({"dest-uri": "amqp://h:70000"}, "a port is above", id="port"),
    pytest.param({"dest-uri": ["amqp://a:x@h", "amqp://b:x@h"]}, "differ in the user", id="users"),
    pytest.param({"dest-uri": ["amqp://h/a", "amqp://h/b"]}, "differ in the vhost", id="vhosts"),
    pytest.param({"src-queue": None}, "neither src-queue nor src-exchange", id="no-source"),
    pytest.param({"dest-queue": None}, "neither dest-queue nor dest-exchange", id="no-target"),
    pytest.param(
        {"dest-queue": None, "dest-exchange": "e"}, "write `queue: in` at the endpoint", id="keys"
    ),
    pytest.param({"src-queue": None, "src-exchange": "e"}, "without src-exchange-key", id="no-key"),
    pytest.param(
        {"src-queue": None, "src-exchange": "amq.headers", "src-exchange-key": "k"},
        "of the type 'headers'",
        id="headers",
    ),
    pytest.param(
        {"src-queue": None, "src-exchange": "amq.direct", "src-exchange-key": "a.*"},
        "only a topic exchange reads",
        id="direct-with-a-wildcard",
    ),
    pytest.param({"src-queue": "a{b}"}, "has a brace", id="brace"),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED)
def test_a_shovel_that_no_route_expresses_is_listed(value: dict[str, object], reason: str) -> None:
    document = imported({**ENDS, **value})

    assert document.routes == ()
    (line,) = lost(document)
    assert line.startswith("shovel 's'; ")
    assert reason in line


KEYS = [
    pytest.param("src-delete-after", "queue-length", True, id="ends"),
    pytest.param("delete-after", "never", False, id="never-ends"),
    pytest.param("dest-publish-properties", {"delivery_mode": 2}, True, id="properties"),
    pytest.param("add-forward-headers", False, False, id="no-headers"),
    pytest.param("frobnicate", 1, True, id="unknown"),
    pytest.param("reconnect-delay", 7, False, id="delay"),
    pytest.param("ack-mode", "on-publish", False, id="ack-mode"),
    pytest.param("src-queue-args", {"x-queue-type": "quorum"}, False, id="arguments"),
]


@pytest.mark.parametrize(("key", "value", "is_lost"), KEYS)
def test_each_key_of_a_shovel_is_carried_or_listed(key: str, value: object, is_lost: bool) -> None:
    found = lost(imported({**ENDS, key: value}))

    assert bool(found) == is_lost
    assert all(each.startswith(f"{key!r} of shovel 's'; ") for each in found)


URIS = [
    pytest.param("amqp://", "amqp://localhost/", id="own-node"),
    pytest.param("amqp:///v", "amqp://localhost/v", id="own-vhost"),
    pytest.param("amqp://h", "amqp://h/", id="host"),
    pytest.param("amqp://h:5673/%2f", "amqp://h:5673/", id="default-vhost"),
    pytest.param("amqps://u:p@[::1]:1/a%2Fb", "amqps://[::1]:1/a%2Fb", id="everything"),
]


@pytest.mark.parametrize(("uri", "url"), URIS)
def test_a_uri_becomes_an_address(tmp_path: Path, uri: str, url: str) -> None:
    document = imported({**ENDS, "src-uri": uri})

    configuration = loaded(document, tmp_path)
    assert settings_of(configuration, "s-source", RabbitmqSettings).url == url


ADDRESSES = [
    pytest.param("/queues/a%2Fb", "rabbitmq-4", "queue:a/b", "amq.topic", id="queue"),
    pytest.param("/queue/q", "rabbitmq-4", "queue:q", "amq.topic", id="queue-of-version-1"),
    pytest.param("/amq/queue/q", "rabbitmq-4", "queue:q", "amq.topic", id="declared-queue"),
    pytest.param("/exchanges/e/a.b", "rabbitmq-4", "a.b", "e", id="exchange"),
    pytest.param("/topic/a.b", "rabbitmq-4", "a.b", "amq.topic", id="topic"),
    pytest.param("orders", "artemis", "queue:orders", "amq.topic", id="other-product"),
]


@pytest.mark.parametrize(("address", "known", "template", "exchange"), ADDRESSES)
def test_an_end_of_amqp_1_0_becomes_an_endpoint_of_it(
    tmp_path: Path, address: str, known: str, template: str, exchange: str
) -> None:
    value = {**ENDS, "dest-protocol": "amqp10", "dest-address": address,
             "dest-uri": "amqps://u:p@h:5671?hostname=vhost:plant&sasl=plain"}  # fmt: skip
    document = imported(value)

    configuration = loaded(document, tmp_path)
    target = settings_of(configuration, "s-target", AmqpSettings)
    assert (target.known, target.exchange) == (known, exchange)
    assert target.url == "amqps://h:5671/plant"
    assert [each.targets[0].template for each in document.live_routes] == [template]
    assert settings_of(configuration, "s-source", RabbitmqSettings).url == "amqp://localhost/"
    assert ("does not tell the product" in render(document)) == (known == "artemis")
    assert lost(document) == []


JSON = st.recursive(
    st.one_of(st.none(), st.integers(0, 70_000), st.sampled_from(
        ["amqp://", "amqps://u:p@h/v", "amqp10", "/queues/%2F", "/topic/a.{b", "q",
         "a.*.#", "never", "shovel", "{x}", "${env:X}", ""]
    )),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
VALUE = st.dictionaries(
    st.sampled_from([*ENDS, "src-exchange", "src-exchange-key", "dest-exchange", "delete-after",
                     "dest-exchange-key", "src-protocol", "dest-protocol", "src-address",
                     "dest-address", "prefetch-count"]),
    JSON,
)  # fmt: skip


@given(values=st.lists(VALUE, max_size=3))
def test_every_import_passes_the_check(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, object]]
) -> None:
    shovels = [
        {"component": "shovel", "name": f"s{at}", "value": {**ENDS, **value}}
        for at, value in enumerate(values)
    ]
    document = import_rabbitmq("d.json", json.dumps({"parameters": shovels}).encode())

    if document.live_routes:
        folder = tmp_path_factory.mktemp("rabbitmq")
        findings = examine(loaded(document, folder))
        assert [each for each in findings if each.severity == "error"] == []


@given(data=st.binary(max_size=60))
def test_any_bytes_are_imported_or_refused(data: bytes) -> None:
    try:
        import_rabbitmq("d", data)
    except GatewayError as error:
        assert str(error).startswith("d:")  # noqa: PT017  # most of them are refused
