"""Bridges of NanoMQ and EMQX 4 become endpoints and routes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.check.examine import examine
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError
from gateway.imports.document import Document, render
from gateway.imports.nanomq.importer import import_nanomq
from gateway.imports.source_lines import LineStatus
from tests.imports.imported import loaded, sample, settings_of


def imported(body: str) -> Document:
    return import_nanomq("n", f"bridges.mqtt.c {{\n{body}\n}}\n".encode())


def lost(document: Document) -> list[str]:
    return [f"{each.item}; {each.reason}" for each in document.lines(LineStatus.NOT_CARRIED_OVER)]


def routes(document: Document) -> list[tuple[str, str, str]]:
    return [(each.endpoint, each.pattern, each.targets[0].template) for each in document.routes]


SERVER = 'server = "mqtt-tcp://h:1884"\n'
FORWARD = 'forwards = [{local_topic = "a/#", remote_topic = "", qos = 1}]'


@pytest.mark.parametrize("name", ["nanomq.conf", "emqx_bridge_mqtt.conf"])
def test_a_sample_passes_the_check(tmp_path: Path, name: str) -> None:
    document = import_nanomq(*sample(name))

    findings = examine(loaded(document, tmp_path))
    assert [each for each in findings if each.severity != "note"] == []
    text = render(document) + "\n".join(map(str, document.omitted))
    assert "s3cret" not in text


def test_blocks_become_endpoints_and_routes(tmp_path: Path) -> None:
    document = import_nanomq(*sample("nanomq.conf"))

    configuration = loaded(document, tmp_path)
    local = settings_of(configuration, "office-local", MqttSettings)
    office = settings_of(configuration, "office", MqttSettings)
    assert (local.host, local.port, local.username) == ("localhost", 1884, None)
    assert (office.host, office.port, office.version) == ("mqtt.example.com", 8883, "5")
    assert (office.keepalive, office.session_expiry, office.client_id) == (60, 3600, "plant-7")
    assert office.tls is not None
    assert office.tls.ca_file == "/etc/office.pem"
    assert routes(document) == [
        ("office-local", "state/{rest...}", "plants/7/state/{rest...}"),
        ("office", "news/{rest...}", "news/{rest...}"),
        ("office-local", "alarm/1", "alarms/7"),
        ("office-local", "log/{rest...}", "logs/7"),
        ("office", "cmd/7", "cmd"),
        ("web-local", "web/{rest...}", "web/{rest...}"),
    ]
    web = settings_of(configuration, "web", MqttSettings)
    assert (web.addresses, web.port) == (("wss://web.example.com:443/mqtt",), 443)
    assert [each.targets[0].lossy for each in document.routes] == [
        False,
        False,
        False,
        True,
        False,
        False,
    ]
    assert [each.partition(";")[0] for each in lost(document)] == [
        "'will' of bridge 'office'",
        "'key_password' of bridge 'office'",
        "bridge 'quick'",
        "section 'bridges.aws'",
    ]


def test_lines_become_endpoints_and_routes(tmp_path: Path) -> None:
    document = import_nanomq(*sample("emqx_bridge_mqtt.conf"))

    aws = settings_of(loaded(document, tmp_path), "aws", MqttSettings)
    assert (aws.host, aws.port, aws.version, aws.tls) == ("127.0.0.1", 1885, "3.1.1", None)
    assert (aws.session_expiry, aws.keepalive, aws.qos) == (0, 60, 1)
    assert routes(document) == [
        ("aws-local", "topic1/{rest...}", "plants/7/topic1/{rest...}"),
        ("aws-local", "topic2/{rest...}", "plants/7/topic2/{rest...}"),
        ("aws", "cmd/topic1", "receive/aws/cmd/topic1"),
    ]
    assert [each.partition(";")[0] for each in lost(document)] == ["'ciphers' of bridge 'aws'"]


FORMS = [
    pytest.param("bridge.mqtt.address=mqtt-tcp://h:1\nbridge.mqtt.forwards=a/#\n", id="no-name"),
    pytest.param(
        "bridge.mqtt.x.address=h:1\nbridge.mqtt.x.forwards.1.local_topic=a/#\n", id="numbers"
    ),
    pytest.param(
        'bridges { mqtt { x { server = "h:1"\nforwards = [ "a/#" ] } } }', id="nested-blocks"
    ),
    pytest.param(
        'bridges.mqtt.nodes = [\n{ name = x, connector { server = "h:1" }\nforwards = ["a/#"] }]',
        id="list-of-nodes",
    ),
    pytest.param(
        '{"bridges": {"mqtt": {"x": {"server": "h:1", "forwards": [{"local_topic": "a/#"}]}}}}',
        id="json",
    ),
]


@pytest.mark.parametrize("text", FORMS)
def test_each_form_of_a_bridge_is_read(text: str) -> None:
    (route,) = import_nanomq("n", text.encode()).routes

    assert (route.pattern, route.targets[0].template) == ("a/{rest...}", "a/{rest...}")


def test_the_same_names_in_both_directions_are_one_route() -> None:
    document = imported(
        f'{SERVER}proto_ver = 5\nforwards = [{{local_topic = "a/#", remote_topic = ""}}]\n'
        'subscription = [{remote_topic = "a/#", local_topic = "", qos = 1}]'
    )

    (route,) = document.routes
    assert route.both
    assert lost(document) == []


REFUSED = [
    pytest.param('server = "mqtt-tcp://h/mqtt"', "does not read mqtt-tcp", id="path"),
    pytest.param('server = "ws://h/mqtt?key=x"', "does not read mqtt-tcp", id="query"),
    pytest.param('server = "ws://h/${env:X}"', "does not read mqtt-tcp", id="reference"),
    pytest.param('server = "mqtt-quic://h:1"', "does not speak mqtt-quic", id="quic"),
    pytest.param('server = "h:70000"', "does not read mqtt-tcp", id="port"),
    pytest.param(f'server = "h:{"9" * 5_000}"', "does not read mqtt-tcp", id="long-port"),
    pytest.param(f"{SERVER}enable = false", "it is off there", id="off"),
    pytest.param("clean_start = true", "does not read mqtt-tcp", id="no-server"),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_a_bridge_that_no_endpoint_reaches_is_listed(body: str, reason: str) -> None:
    document = imported(f"{body}\n{FORWARD}")

    assert document.routes == ()
    (line,) = lost(document)
    assert line.startswith("bridge 'c'; ")
    assert reason in line


WEBSOCKETS = [
    pytest.param("ws://h/mqtt", ("h", 80, "/mqtt", False), id="plain"),
    pytest.param("ws://h:8083/a/b", ("h", 8083, "/a/b", False), id="port"),
    pytest.param("ws://h:8083", ("h", 8083, "/", False), id="no-path"),
    pytest.param("wss://[::1]/mqtt", ("[::1]", 443, "/mqtt", True), id="tls"),
    pytest.param("wss://h:8084/mqtt", ("h", 8084, "/mqtt", True), id="tls-and-port"),
]


@pytest.mark.parametrize(("server", "expected"), WEBSOCKETS)
def test_a_bridge_over_websockets_has_their_path(
    tmp_path: Path, server: str, expected: tuple[str, int, str, bool]
) -> None:
    document = imported(f'server = "{server}"\n{FORWARD}')

    found = settings_of(loaded(document, tmp_path), "c", MqttSettings)
    assert found.websocket is not None
    assert (found.host, found.port, found.websocket.path, found.tls is not None) == expected
    assert lost(document) == []


TOPICS = [
    pytest.param('{remote_topic = "x"}', "no topic to subscribe to", id="no-topic"),
    pytest.param('{local_topic = "a", suffix = "/x"}', "it has a suffix", id="suffix"),
    pytest.param('{local_topic = "a", prefix = "${node}/"}', "a variable", id="variable"),
    pytest.param('{local_topic = "a/#", remote_topic = "b/#"}', "'#'", id="two-wildcards"),
    pytest.param('{local_topic = "a{x}"}', "has a brace", id="brace"),
]


@pytest.mark.parametrize(("entry", "reason"), TOPICS)
def test_a_topic_that_no_route_expresses_is_listed(entry: str, reason: str) -> None:
    document = imported(f'{SERVER}forwards = [{entry}, {{local_topic = "z"}}]')

    assert [each.pattern for each in document.routes] == ["z"]
    (line,) = lost(document)
    assert reason in line


UNREADABLE = [
    pytest.param(b"bridges.mqtt.c {\n", "n:2: the file is not readable: a block", id="brace"),
    pytest.param(b'a = "x\n', "n:1: the file is not readable: a quote", id="quote"),
    pytest.param(b"a = [1\n", "n:2: the file is not readable: a list", id="list"),
    pytest.param(b"a = }\n", "n:1: the file is not readable: 'a' has no value", id="value"),
    pytest.param(b"\xff", "n: the file is not UTF-8", id="encoding"),
    pytest.param(b"a {" * 10_000, "n: blocks are nested more than", id="deep"),
]


@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_a_file_that_is_not_readable_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(GatewayError, match=reason):
        import_nanomq("n", data)


WORDS = st.sampled_from(
    ["{", "}", "[", "]", "=", ":", ",", "\n", '"', "bridges.mqtt.c", "server", '"h:1"', "forwards",
     "local_topic", "remote_topic", '"a/#"', "subscription", "#", "//", "bridge.mqtt.x.address=h",
     "${node}", "qos", "proto_ver", "name", "clean_start", "true"]
)  # fmt: skip


@given(words=st.lists(WORDS, max_size=40))
def test_any_text_is_imported_or_refused(words: list[str]) -> None:
    try:
        document = import_nanomq("n", " ".join(words).encode())
    except GatewayError as error:
        assert str(error).startswith("n:")  # noqa: PT017  # most of them are refused
    else:
        assert render(document).startswith("# Made by")


NAME = st.sampled_from(["a/#", "a/+", "b", "#", "$SYS/#", "a/b", "x{y}", ""])


@given(
    forwards=st.lists(st.tuples(NAME, NAME), max_size=3),
    subscriptions=st.lists(st.tuples(NAME, NAME), max_size=3),
)
def test_every_import_passes_the_check(
    tmp_path_factory: pytest.TempPathFactory,
    forwards: list[tuple[str, str]],
    subscriptions: list[tuple[str, str]],
) -> None:
    lists = [
        f"{key} = [" + "\n".join(f'{{local_topic = "{a}", remote_topic = "{b}"}}' for a, b in rows)
        + "]"
        for key, rows in (("forwards", forwards), ("subscription", subscriptions))
    ]  # fmt: skip
    document = imported(SERVER + "\n".join(lists))

    if document.live_routes:
        findings = examine(loaded(document, tmp_path_factory.mktemp("nanomq")))
        assert [each for each in findings if each.severity == "error"] == []
