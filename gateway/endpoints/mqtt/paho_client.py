"""The one place that leans on paho's inside: a paho client whose socket is given to it.

paho speaks for the session (CONNECT, SUBSCRIBE, DISCONNECT and their answers); the traffic
passes beside it. The inside used is one method, `Client._create_socket`; all else is public.
"""

from __future__ import annotations

from collections.abc import Callable

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.properties import Properties


def new_properties(packet_type: int) -> Properties:
    """An empty set of properties for one type of packet."""
    return Properties(packet_type)  # type: ignore[no-untyped-call]  # paho has no types there


class Pipe:
    """What paho takes for its socket: it reads what it is fed and writes by `write`.

    Mutable: it holds bytes on their way to paho.
    """

    def __init__(self, write: Callable[[bytes], None], fileno: int) -> None:
        self._write, self._fileno = write, fileno
        self._fed = bytearray()

    def feed(self, data: bytes) -> None:
        self._fed += data

    def recv(self, size: int) -> bytes:
        if not self._fed:
            raise BlockingIOError
        data = bytes(self._fed[:size])
        del self._fed[:size]
        return data

    def send(self, data: bytes | bytearray) -> int:
        self._write(bytes(data))
        return len(data)

    def fileno(self) -> int:
        return self._fileno

    def setblocking(self, flag: bool) -> None:
        """Nothing to do: it never blocks."""

    def close(self) -> None:
        """Nothing to do: the socket behind it belongs to the link."""


class SessionClient(Client):
    """A paho client that opens no socket and starts no thread; mutable as paho is."""

    def __init__(self, client_id: str, version: str, *, clean: bool, pipe: Pipe) -> None:
        five = version == "5"
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=None if five else clean,
            protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        self._pipe = pipe
        # With this callback set paho leaves its packets for `drain` and never writes by itself.
        self.on_socket_register_write = lambda _client, _userdata, _sock: None

    def _create_socket(self) -> Pipe:
        return self._pipe

    def drain(self) -> None:
        """Pass all packets that paho has ready on to the pipe."""
        while self.want_write():
            if self.loop_write() != MQTTErrorCode.MQTT_ERR_SUCCESS:
                return

    def take(self, packet: bytes) -> bool:
        """Let paho read one whole packet; False when it finds that the session is over."""
        self._pipe.feed(packet)
        verdict = self.loop_read()
        self.drain()
        return verdict == MQTTErrorCode.MQTT_ERR_SUCCESS
