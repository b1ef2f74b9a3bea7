from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.imports.document import Document, render
from gateway.imports.mosquitto import importer
from gateway.imports.mosquitto.options import BRIDGE_OPTIONS, BROKER_OPTIONS, IMPORTED, UNSUPPORTED
from gateway.imports.source_lines import LineStatus
from tests.imports.imported import import_alone, loaded, omitted, sample, settings_of

SECRET_OPTIONS = {
    f"HEAD_OFFICE_{name}": f"value of {name}"
    for name in ("USERNAME", "PASSWORD", "LOCAL_USERNAME", "LOCAL_PASSWORD")
}
HEAD = "connection c\naddress h\n"


def imported(text: str) -> Document:
    return import_alone("m", f"{text}notifications false\n".encode())


def remote(options: str, folder: Path, name: str = "c") -> tuple[MqttSettings, list[str]]:
    document = imported(f"{HEAD}{options}\ntopic a/# out 1\n")
    secrets = {"C_USERNAME": "u", "C_PASSWORD": "p"}
    configuration = loaded(document, folder, **secrets)
    return settings_of(configuration, name, MqttSettings), omitted(document)


def test_the_sample_becomes_a_configuration(tmp_path: Path) -> None:
    document = import_alone(*sample("mosquitto.conf"))

    configuration = loaded(document, tmp_path, **SECRET_OPTIONS)

    assert list(configuration.endpoints) == [
        "head-office-local", "head-office", "second-local", "second",
    ]  # fmt: skip
    local, office = (
        settings_of(configuration, name, MqttSettings)
        for name in ("head-office-local", "head-office")
    )
    assert (local.port, local.username, local.qos) == (1884, "value of LOCAL_USERNAME", 2)
    assert office.host == "mqtt.example.com:8883, backup.example.com:8883"
    assert (office.fail_back, office.version) == (True, "5")
    assert settings_of(configuration, "second", MqttSettings).version == "5"  # it is a source
    assert office.tls == MqttTlsSettings(
        ca_file="/etc/ssl/office.pem",
        cert_file="/etc/ssl/plant.pem",
        key_file="/etc/ssl/plant.key",
        alpn=("mqtt",),
    )
    assert [(each.endpoint, each.of, each.name) for each in configuration.state] == [
        (("head-office",), "head-office-local", "plant-7/bridge"),
        (("head-office-local",), "head-office", "plant-7/bridge"),
        (("second-local",), "second", "bridge/second/state"),
    ]
    assert configuration.routes[-1].targets[0].rules.sets
    assert [
        (route.endpoint, route.source.text, route.targets[0].template.text)
        for route in configuration.routes
        if route.targets[0].template is not None
    ] == [
        (
            "head-office-local",
            "line/{a}/state/{rest...}",
            "plant-7/line/{a}/state/{rest...}",
        ),
        ("head-office", "plant-7/commands/{rest...}", "commands/{rest...}"),
        ("head-office-local", "shared/{a}/{rest...}", "plants/shared/{a}/{rest...}"),
        ("head-office", "plants/shared/{a}/{rest...}", "shared/{a}/{rest...}"),
        ("head-office", "$SYS/broker/uptime", "clock/now"),
        ("second", "news/{rest...}", "news/{rest...}"),
        ("second-local", "log/{rest...}", "log/{rest...}"),
    ]


def test_the_output_contains_no_password() -> None:
    document = import_alone(*sample("mosquitto.conf"))
    text = render(document) + "\n".join(omitted(document))

    assert "s3cret!" not in text
    assert "hunter2" not in text
    assert '"The line is slow."' in text


CARRIED_OPTIONS = [
    pytest.param("addresses h:1999", "port", 1999, id="port"),
    pytest.param("addresses h:65536", "port", 1883, id="impossible-port"),
    pytest.param("addresses a b:1999", "host", "a:1883, b:1999", id="several"),
    pytest.param("addresses a b", "fail_back", True, id="main-address"),
    pytest.param("addresses a b\nround_robin true", "fail_back", False, id="equal-addresses"),
    pytest.param("keepalive_interval 45", "keepalive", 45, id="keepalive"),
    pytest.param("clientid x-1", "client_id", "x-1", id="old-client-id"),
    pytest.param("remote_clientid x-1", "client_id", "x-1", id="client-id"),
    pytest.param("cleansession true", "session_expiry", 0, id="clean"),
    pytest.param("cleansession false", "session_expiry", 86_400, id="kept"),
    pytest.param("bridge_session_expiry_interval 60", "session_expiry", 60, id="expiry"),
    pytest.param("bridge_protocol_version mqttv50", "version", "5", id="version-5"),
    pytest.param("bridge_protocol_version mqttv311", "version", "3.1.1", id="version-3"),
    pytest.param("bridge_max_packet_size 2000", "max_packet", 2000, id="packet"),
    pytest.param("bridge_max_packet_size 0", "max_packet", 268_435_460, id="packet-unlimited"),
    pytest.param("bridge_receive_maximum 7", "receive_window", 7, id="receive-maximum"),
    pytest.param("restart_timeout 20", "backoff_max", 20.0, id="constant-restart"),
    pytest.param("restart_timeout 5 60", "backoff_min", 5.0, id="restart"),
    pytest.param("username u\npassword p q", "password", "p", id="password-by-reference"),
    pytest.param(
        "bridge_cafile /ca\nbridge_alpn x-amzn-mqtt-ca",
        "tls",
        MqttTlsSettings(ca_file="/ca", alpn=("x-amzn-mqtt-ca",)),
        id="alpn",
    ),
    pytest.param("bridge_psk 00ff\nx", "tls", MqttTlsSettings(), id="psk-stays-encrypted"),
    pytest.param("bridge_tls_use_os_certs true", "tls", MqttTlsSettings(), id="system-authorities"),
]


@pytest.mark.parametrize(("line", "field", "value"), CARRIED_OPTIONS)
def test_an_option_becomes_a_setting(tmp_path: Path, line: str, field: str, value: object) -> None:
    if line.startswith("addresses"):
        document = imported(f"connection c\n{line}\ntopic a\n")
        settings = settings_of(loaded(document, tmp_path), "c", MqttSettings)
    else:
        settings, _ = remote(line, tmp_path)

    assert getattr(settings, field) == value


LEFT_OPTIONS = [
    pytest.param("keepalive_interval many", "not a whole number in 1..65535", id="no-number"),
    pytest.param("bridge_max_packet_size 3", "not a whole number in 64..", id="out-of-range"),
    pytest.param("restart_timeout 1 2 3", "not one or two numbers of seconds", id="restart"),
    pytest.param("bridge_protocol_version mqttv31", "3.1.1 is taken", id="version-3.1"),
    pytest.param("cleansession yes", "neither true nor false", id="truth"),
    pytest.param("remote_password p", "with a user name only", id="password-alone"),
    pytest.param("bridge_insecure true", "server_hostname", id="insecure"),
    pytest.param("bridge_certfile /c", "not encrypted without bridge_cafile", id="no-tls"),
    pytest.param("bridge_alpn x", "not encrypted without bridge_cafile", id="alpn-without-tls"),
    pytest.param("remote_clientid ${env:HOME}", "would replace", id="reference"),
    pytest.param("start_type lazy", "always open", id="lazy"),
    pytest.param("keepalive_interval", "it has no value", id="no-value"),
    pytest.param("address other", "it repeats line 2", id="twice"),
]


@pytest.mark.parametrize(("line", "reason"), LEFT_OPTIONS)
def test_an_option_without_an_equivalent_is_listed_with_its_reason(
    tmp_path: Path, line: str, reason: str
) -> None:
    _, found = remote(line, tmp_path)

    assert [each for each in found if each.startswith("m:3: option ") and reason in each]
    assert len(found) == 1


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_every_unsupported_option_is_listed(name: str) -> None:
    found = imported(f"{HEAD}{name} something\ntopic a\n").omitted

    assert [(each.location.line, each.status) for each in found] == [
        (3, LineStatus.NOT_CARRIED_OVER)
    ]


NO_EFFECT = [
    "bridge_insecure false", "notifications false", "start_type automatic", "try_private false",
    "round_robin true", "bridge_outgoing_retain true", "notification_topic a/b",
]  # fmt: skip


@pytest.mark.parametrize("line", NO_EFFECT)
def test_an_option_that_matches_the_default_behaviour_is_not_listed(line: str) -> None:
    assert omitted(imported(f"{HEAD}{line}\ntopic a\n")) == []


OTHERS = [
    pytest.param("persistence true\n", "m:1: option 'persistence': stays where it is", id="own"),
    pytest.param("auth_opt_x 1\n", "m:1: option 'auth_opt_x': stays where it is", id="plugin"),
    pytest.param("frobnicate 1\n", "m:1: option 'frobnicate': not carried over", id="unknown"),
    pytest.param(
        "remote_pasword=hunter2\n", "m:1: option 'remote_pasword': not carried", id="one-word"
    ),
    pytest.param("include_dir /x\n", "m:1: option 'include_dir': not carried over", id="include"),
    pytest.param("topic a\n", "m:1: option 'topic': not carried over", id="no-connection"),
    pytest.param("connection\n", "m:1: this connection: not carried over", id="no-name"),
    pytest.param(
        "connection c\ntopic a\n",
        "m:1: connection 'c': not carried over; it has no a",
        id="address",
    ),
    pytest.param(HEAD, "m:1: connection 'c': not carried over; it has no readable", id="no-topic"),
    pytest.param(
        f"{HEAD}topic a{{\n", "m:3: a topic of connection 'c': not carried over", id="brace"
    ),
    pytest.param(
        f"{HEAD}topic a\nconnection c\n", "m:4: connection 'c': not carried over", id="twice"
    ),
]


@pytest.mark.parametrize(("text", "expected"), OTHERS)
def test_every_other_line_is_listed(text: str, expected: str) -> None:
    found = omitted(imported(text))

    assert any(each.startswith(expected) for each in found)
    assert not any("hunter2" in each for each in found)


def test_both_is_one_route_with_a_derived_reverse_route(tmp_path: Path) -> None:
    document = imported(f"{HEAD}topic t/# both 1 L/ R/\n")

    (entry,) = document.routes
    assert (entry.pattern, entry.targets[0].template) == ("L/t/{rest...}", "R/t/{rest...}")
    routes = loaded(document, tmp_path).routes
    assert [(route.endpoint, route.source.subscription) for route in routes] == [
        ("c-local", "L/t/#"), ("c", "R/t/#"),
    ]  # fmt: skip


VERSIONS = [
    pytest.param("topic a out", ["5", "3.1.1"], [], id="out"),
    pytest.param("topic a in", ["5", "5"], [], id="in-keeps-retain"),
    pytest.param(
        "bridge_protocol_version mqttv311\ntopic a in",
        ["5", "3.1.1"],
        ["m:3: option 'bridge_protocol_version'"],
        id="in-loses-retain",
    ),
    pytest.param("topic a both", ["5", "5"], ["m:1: MQTT 3.1.1 on the bridge"], id="both"),
    pytest.param(
        "topic a/# out\ntopic a/b in",
        ["5", "5"],
        ["m:1: MQTT 3.1.1 on the bridge"],
        id="out-and-in",
    ),
    pytest.param("bridge_protocol_version mqttv50\ntopic a both", ["5", "5"], [], id="mqttv50"),
    pytest.param(
        "bridge_protocol_version mqttv311\ntopic a both",
        ["5", "5"],
        ["m:3: MQTT 3.1.1 on the bridge"],
        id="mqttv311",
    ),
]


@pytest.mark.parametrize(("lines", "versions", "told"), VERSIONS)
def test_the_version_keeps_what_the_bridge_keeps_or_is_listed(
    tmp_path: Path,
    lines: str,
    versions: list[str],
    told: list[str],
) -> None:
    document = imported(f"{HEAD}{lines}\n")

    endpoints = loaded(document, tmp_path).endpoints
    assert [settings_of_version(each.settings) for each in endpoints.values()] == versions
    assert [each.partition(": not carried over; ")[0] for each in omitted(document)] == told


def settings_of_version(settings: object) -> str:
    assert isinstance(settings, MqttSettings)
    return settings.version


def test_an_endpoint_has_the_highest_qos_of_its_topics() -> None:
    document = imported(f"{HEAD}topic a out 2\ntopic b in\n")

    values = [s.value for e in document.endpoints for s in e.settings if s.key == "qos"]
    assert values == [2, 2]


def test_topics_beyond_the_maximum_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importer, "MAX_TOPICS", 2)

    document = imported(f"{HEAD}topic a\ntopic b\ntopic c\n")

    assert len(document.routes) == 2
    assert [each.location.line for each in document.omitted] == [5]


def test_a_route_that_the_check_refuses_is_a_comment(tmp_path: Path) -> None:
    document = imported(f"{HEAD}topic plant/# out 1\ntopic $SYS/# out\n")

    assert list(loaded(document, tmp_path).endpoints) == ["c-local", "c"]
    assert [each.name for each in document.live_routes] == ["c-out-plant-all"]
    text = render(document)
    assert "  # This route is a comment: `gateway check` refuses it: no name can be sent" in text
    assert '#   c-out-SYS-all:\n#     from: {endpoint: c-local, pattern: "$SYS/{rest...}"}' in text
    assert [each.partition(";")[0] for each in omitted(document)] == [
        "m:4: route 'c-out-SYS-all': not carried over"
    ]


def test_a_mapping_of_refused_routes_only_says_so() -> None:
    text = render(imported(f"{HEAD}topic $SYS/# out\n"))

    assert "# No line became a route; a configuration needs one at least." in text
    assert "\nroutes:" not in text


def test_two_connections_that_form_a_cycle_are_listed() -> None:
    second = "notifications false\nconnection d\naddress h\n"

    found = omitted(imported(f"{HEAD}topic a/# out\n{second}topic a/# in\n"))

    assert [each.partition(";")[0] for each in found] == [
        "m:3: route 'c-out-a-all': not carried over"
    ]
    assert "a message comes back to its route" in found[0]


CLEARED = [
    pytest.param("topic a/# out", [False], id="out"),
    pytest.param("topic a/# in", [None], id="in"),
    pytest.param("topic a/# both", [False, None], id="both"),
]


@pytest.mark.parametrize(("line", "found"), CLEARED)
def test_a_bridge_that_sends_nothing_retained_clears_the_flag_at_the_remote_broker(
    tmp_path: Path, line: str, found: list[bool | None]
) -> None:
    document = imported(f"{HEAD}bridge_outgoing_retain false\n{line}\n")

    routes = loaded(document, tmp_path).routes
    rules = [dict(each.targets[0].rules.sets) for each in routes]
    assert [next(iter(each.values()), None) for each in rules] == found
    assert ("with `bridge_outgoing_retain false`" in render(document).replace("\n# ", " ")) == (
        False in found
    )


def test_the_tables_of_options_do_not_contradict_each_other() -> None:
    assert not IMPORTED & set(UNSUPPORTED)
    assert not BRIDGE_OPTIONS & BROKER_OPTIONS


WORDS = st.one_of(
    st.sampled_from(sorted(BRIDGE_OPTIONS | {"topic", "connection", "clientid", "listener"})),
    st.sampled_from(["a/+", "#", "both", "1", '""', "L/", "h:1", "true", "${env:X}", "\u2028"]),
)


@given(lines=st.lists(st.lists(WORDS, min_size=1, max_size=5), max_size=12))
@example(lines=[["topic", "address", "both"]])
def test_the_mapping_of_any_file_loads(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]]
) -> None:
    body = "\n".join(" ".join(words) for words in lines)
    document = import_alone("m", f"{HEAD}topic x\n{body}\n".encode())
    secrets = {
        str(setting.value)[6:-1]: "secret"
        for endpoint in document.endpoints
        for setting in endpoint.settings
        if setting.key in {"username", "password"}
    }

    folder = tmp_path_factory.mktemp("mosquitto")
    configuration = loaded(document, folder, **secrets)

    assert document.routes
    both_ways = [each for each in document.routes if each.both]  # each has a derived reverse route
    assert len(configuration.routes) == len(document.routes) + len(both_ways)
