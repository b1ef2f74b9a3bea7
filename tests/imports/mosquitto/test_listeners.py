"""The local endpoint reaches a listener that the gateway can use, or the choice is listed."""

from __future__ import annotations

import pytest

from gateway.imports.document import Value
from gateway.imports.source_lines import LineStatus
from tests.imports.imported import import_alone

BRIDGE = "connection c\naddress h\ntopic a/# out\nnotifications false\n"
TLS = "certfile /c.pem\nkeyfile /k.pem\n"


def local(lines: str) -> tuple[dict[str, Value], list[str]]:
    """Import a broker with these lines: the settings of its endpoint, and what is lost."""
    document = import_alone("m", f"{lines}{BRIDGE}".encode())
    lost = document.lines(LineStatus.NOT_CARRIED_OVER)
    return {each.key: each.value for each in document.endpoints[0].settings}, [*map(str, lost)]


USABLE = [
    pytest.param("", "localhost", 1883, id="none"),
    pytest.param("port 1884\n", "localhost", 1884, id="port"),
    pytest.param("port 1884\nbind_address 127.0.0.1\n", "127.0.0.1", 1884, id="bind-address"),
    pytest.param("listener 1884\n", "localhost", 1884, id="any-address"),
    pytest.param("listener 1884 0.0.0.0\n", "localhost", 1884, id="unspecified"),
    pytest.param("listener 1884 # main\n", "localhost", 1884, id="comment"),
    pytest.param("listener 1884 10.0.0.7\n", "10.0.0.7", 1884, id="another-address"),
    pytest.param("listener 1 10.0.0.7\nlistener 2 ::1\n", "::1", 2, id="loopback-first"),
    pytest.param(f"listener 1\n{TLS}listener 2\n", "localhost", 2, id="tls-before"),
    pytest.param(f"listener 2\nlistener 1\n{TLS}", "localhost", 2, id="tls-behind"),
    pytest.param("listener 1\nprotocol websockets\nlistener 2\n", "localhost", 2, id="websockets"),
    pytest.param("listener 1\nprotocol mqtt x\n", "localhost", 1, id="text-behind-the-protocol"),
    pytest.param("listener 1\nmount_point a/\nlistener 2\n", "localhost", 2, id="mount-point"),
    pytest.param("listener 1\npsk_hint x\nlistener 2\n", "localhost", 2, id="pre-shared-key"),
    pytest.param("listener 0 /run/my m\nlistener 2\n", "localhost", 2, id="socket"),
    pytest.param("listener 1\nbind_interface eth0\nlistener 2\n", "localhost", 2, id="interface"),
    pytest.param(f"{TLS}listener 2\n", "localhost", 2, id="tls-of-the-default-listener"),
    pytest.param("max_connections 9\nlistener 2 10.0.0.7\n", "localhost", 1883, id="default-too"),
    pytest.param("listener 2 10.0.0.7\nport 1884\n", "localhost", 1884, id="port-behind-it"),
]


@pytest.mark.parametrize(("lines", "host", "port"), USABLE)
def test_a_listener_that_the_gateway_can_use_is_chosen(lines: str, host: str, port: int) -> None:
    settings, lost = local(lines)

    assert (settings["host"], settings["port"], lost) == (host, port, [])
    assert "tls" not in settings


UNUSABLE = [
    pytest.param(f"listener 8883\n{TLS}", 8883, "m:1 needs TLS; name the certificate", id="tls"),
    pytest.param("listener 9\nprotocol http_api\n", 9, "m:1 speaks no MQTT", id="http"),
    pytest.param("listener 0 /run/m\n", 1883, "m:1 is a socket of the file", id="socket"),
    pytest.param("listener 9\nmount_point a/\n", 9, "m:1 has a mount point", id="mount-point"),
    pytest.param(
        f"listener 9\nmount_point a/\nlistener 8\n{TLS}psk_hint x\n",
        9,
        "names are shorter than those of a bridge; m:3 needs TLS and needs a pre-shared key; write",
        id="both",
    ),
]


@pytest.mark.parametrize(("lines", "port", "reason"), UNUSABLE)
def test_a_broker_without_a_usable_listener_is_a_choice_to_make(
    lines: str, port: int, reason: str
) -> None:
    settings, lost = local(lines)

    assert settings["port"] == port
    assert settings.get("tls") == ({} if "name the certificate" in reason else None)
    assert [each.split(": ")[1] for each in lost] == ["the listener for the gateway"]
    assert reason in lost[0]


WEBSOCKETS = [
    pytest.param("listener 9\nprotocol websockets\n", 9, "/mqtt", id="alone"),
    pytest.param("listener 9\nprotocol websockets\nlistener 8 10.0.0.7\n", 8, None, id="plain"),
    pytest.param(f"listener 8\n{TLS}listener 9\nprotocol websockets\n", 9, "/mqtt", id="tls"),
]


@pytest.mark.parametrize(("lines", "port", "path"), WEBSOCKETS)
def test_a_listener_of_websockets_is_used_where_no_other_is_usable(
    lines: str, port: int, path: str | None
) -> None:
    settings, lost = local(lines)

    assert (settings["port"], settings.get("websocket"), lost) == (port, path, [])


def test_a_listener_of_websockets_with_tls_has_both() -> None:
    settings, lost = local(f"listener 9\nprotocol websockets\n{TLS}")

    assert (settings["tls"], settings["websocket"]) == ({}, "/mqtt")
    assert "name the certificate authority" in lost[0]


USERS = [
    pytest.param("allow_anonymous false # x\n", True, id="one-word"),
    pytest.param("allow_anonymous 0\n", True, id="as-a-number"),
    pytest.param("allow_anonymous false\nallow_anonymous true\n", False, id="the-last-decides"),
    pytest.param(
        "per_listener_settings true\nlistener 1\nallow_anonymous true\n"
        "listener 2\nprotocol websockets\nallow_anonymous false\n",
        False,
        id="of-the-listener",
    ),
    pytest.param(
        "per_listener_settings true\nlistener 1\nallow_anonymous false\n"
        "listener 2\nprotocol websockets\nallow_anonymous true\n",
        True,
        id="of-the-listener-refused",
    ),
]


@pytest.mark.parametrize(("lines", "needed"), USERS)
def test_a_user_is_needed_where_the_listener_refuses_others(lines: str, needed: bool) -> None:
    settings, _ = local(lines)

    assert ("username" in settings) == needed


def test_a_listener_whose_users_no_line_decides_has_a_note() -> None:
    document = import_alone("m", f"listener 1884\n{BRIDGE}".encode())

    (port,) = (each for each in document.endpoints[0].settings if each.key == "port")
    assert port.note.startswith("m:1: the listener. No line has allow_anonymous: mosquitto 2.0")
