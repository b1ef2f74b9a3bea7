"""The seam to paho: these fail when a new paho no longer asks us for its socket."""

from __future__ import annotations

from paho.mqtt.client import Client

from gateway.endpoints.mqtt.paho_client import Pipe, SessionClient


def session(version: str) -> tuple[SessionClient, Pipe, bytearray]:
    written = bytearray()
    pipe = Pipe(written.extend, 0)
    client = SessionClient("me", version, clean=True, pipe=pipe)
    return client, pipe, written


def test_paho_still_has_the_method_we_replace() -> None:
    assert callable(getattr(Client, "_create_socket", None))


def test_paho_writes_its_connect_to_our_pipe_and_opens_no_socket() -> None:
    client, _, written = session("3.1.1")
    client.connect("no.such.host.invalid", 1883, 30)
    assert not written
    client.drain()

    assert bytes(written) == b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x1e\x00\x02me"


def test_paho_reads_a_packet_that_is_fed_to_it() -> None:
    client, _, _ = session("5")
    seen: list[bool] = []
    client.on_connect = lambda _client, _userdata, flags, _reason, _properties: seen.append(
        flags.session_present
    )
    client.connect("no.such.host.invalid", 1883, 30)
    client.drain()

    assert client.take(b"\x20\x03\x01\x00\x00")
    assert seen == [True]


def test_paho_says_when_a_packet_ends_the_session() -> None:
    client, _, _ = session("3.1.1")
    client.connect("no.such.host.invalid", 1883, 30)
    client.drain()

    assert not client.take(b"\xf0\x00")
