"""The settings of a bridge's two endpoints; a value that does not fit is left, and said so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from gateway.endpoints.settings.base import U16, U32
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.imports.document import Setting
from gateway.imports.lines import Left
from gateway.imports.mosquitto.config_files import Connection, Option
from gateway.imports.mosquitto.options import LOST, SAME
from gateway.imports.yaml_text import REFERENCE, Value

VERSIONS = {"mqttv50": "5", "mqttv311": "3.1.1"}
TRUTH = {"true": True, "false": False}
PORT, TLS_FILES = 1883, {"ca_file": "cafile", "cert_file": "certfile", "key_file": "keyfile"}
OF_TLS = ("bridge_cafile", "bridge_capath", "bridge_psk")  # each of them encrypts the bridge

MQTT_5 = Setting(
    "version",
    "5",
    "Its user properties carry the origin path, which keeps what crosses from coming back.",
)
LOOPS = (
    "it has no room for the origin path, by which a route in both directions knows what it has"
    " sent; both endpoints say version 5. Where a broker takes 3.1.1 alone, write that: the gateway"
    " then tells its own messages by name and payload"
)


def local_settings(
    connection: Connection, variable: str, port: int, left: list[Left], *, both: bool
) -> tuple[Setting, ...]:
    """How to reach the broker whose file this is, as a client; `both` when a route is."""
    side = _Side(connection, variable, "local", left)
    clean = "local_cleansession" if "local_cleansession" in connection.options else "cleansession"
    return (
        Setting("kind", "mqtt"),
        Setting("host", "localhost"),
        Setting("port", port or PORT, "The first listener's port." if port else ""),
        *((MQTT_5,) if both else ()),
        *side.log_in(),
        *side.session(clean),
        side.qos(),
        *side.length(),
    )


def remote_settings(
    connection: Connection, variable: str, left: list[Left], *, both: bool
) -> tuple[Setting, ...]:
    """How to reach the other broker; every option of the bridge is used or left here."""
    side = _Side(connection, variable, "remote", left)
    side.leave()
    return (
        Setting("kind", "mqtt"),
        *side.address(),
        *side.tls(),
        side.version(both=both),
        *side.log_in(),
        *side.session("cleansession"),
        *side.number("keepalive_interval", "keepalive", 1, U16),
        *side.backoff(),
        *side.packet(),
        *side.number("bridge_receive_maximum", "receive_maximum", 1, U16),
        side.qos(),
        *side.length(),
    )


class _Side:
    """One side of a connection. Mutable: what does not fit goes to `left`."""

    def __init__(self, connection: Connection, variable: str, side: str, left: list[Left]) -> None:
        self._options, self._topics = connection.options, connection.topics
        self._place = connection.place
        self._variable, self._side, self._left = variable, side, left

    def leave(self) -> None:
        """Say of every option that has no place in an endpoint why."""
        for name, reason in LOST.items():
            option = self._options.get(name)
            if option is not None and option.value.lower() != SAME.get(name):
                self._lose(option, reason)

    def address(self) -> Iterator[Setting]:
        option = self._options["address"]
        first, *others = option.value.split()
        host, colon, text = first.rpartition(":")
        if not colon or not text.isdecimal():
            host, text = first, ""
        yield Setting("host", self._plain(option, host) or "localhost", str(option.place))
        port = int(text[:6] or 0)
        if port > U16:
            self._lose(option, f"its port is past {U16}")
        elif port:
            yield Setting("port", port)
        elif not self._encrypted():
            yield Setting("port", PORT)
        else:
            yield Setting("port", PORT, "mosquitto's default, also with TLS.")
        if others:
            self._lose(option, f"{LOST['round_robin']}; the first is taken")

    def tls(self) -> Iterator[Setting]:
        if not self._encrypted():
            reason = "the bridge is not encrypted without bridge_cafile or bridge_capath"
            for name in ("bridge_certfile", "bridge_keyfile"):
                if (option := self._options.get(name)) is not None:
                    self._lose(option, reason)
            return
        values: dict[str, Value] = {}
        for key, name in TLS_FILES.items():
            if (option := self._options.get(f"bridge_{name}")) is not None:
                values[key] = self._plain(option, option.value)
        values = {key: value for key, value in values.items() if value}
        note = "" if "ca_file" in values else "The system's own authorities are trusted."
        yield Setting("tls", values, note)

    def version(self, *, both: bool) -> Setting:
        option = self._options.get("bridge_protocol_version")
        version = None if option is None else VERSIONS.get(option.value.lower())
        if both:
            if version != "5":
                place = self._place if option is None else option.place
                self._left.append(Left(place, "MQTT 3.1.1 on the bridge", LOOPS))
            return MQTT_5
        if option is None:
            return Setting("version", "3.1.1", "mosquitto's default for a bridge.")
        if version is None:
            self._lose(option, "an endpoint speaks 3.1.1 and 5.0; 3.1.1 is taken")
        return Setting("version", version or "3.1.1")

    def length(self) -> Iterator[Setting]:
        if any(line.local or line.remote for line in self._topics):
            note = "A name that its new prefix makes too long is refused, and set aside."
            yield Setting("length", "refuse", note)

    def log_in(self) -> Iterator[Setting]:
        if (option := self._options.get(f"{self._side}_clientid")) is not None:
            yield Setting("client_id", self._plain(option, option.value))
        user = self._options.get(f"{self._side}_username")
        password = self._options.get(f"{self._side}_password")
        if user is not None:
            yield Setting("username", f"${{env:{self._variable}_USERNAME}}", str(user.place))
            if password is not None:
                value = f"${{env:{self._variable}_PASSWORD}}"
                yield Setting("password", value, f"The password is in {password.place}.")
        elif password is not None:
            self._lose(password, "mosquitto uses it with a user name only, and there is none")

    def session(self, name: str) -> Iterator[Setting]:
        option = self._options.get(name)
        clean = option is not None and TRUTH.get(option.value.lower())
        if option is not None and option.value.lower() not in TRUTH:
            self._lose(option, "it is neither true nor false")
        if clean and option is not None:
            yield Setting("session_expiry", 0, f"{option.place}: a clean session.")
        elif self._side == "remote":
            name, key = "bridge_session_expiry_interval", "session_expiry"
            yield from self.number(name, key, 0, U32)

    def backoff(self) -> Iterator[Setting]:
        option = self._options.get("restart_timeout")
        if option is None:
            return
        words = option.value.split()
        if not 0 < len(words) <= 2 or not all(map(_is_seconds, words)):  # noqa: PLR2004  # base, cap
            self._lose(option, "it is no number of seconds, or two")
            return
        yield Setting("backoff_min", max(1, int(words[0])), str(option.place))
        yield Setting("backoff_max", max(1, int(words[-1])))

    def packet(self) -> Iterable[Setting]:
        option = self._options.get("bridge_max_packet_size")
        if option is None or option.value == "0":  # no limit
            return ()
        low, high = _bounds("max_packet")
        return self.number("bridge_max_packet_size", "max_packet", low, high)

    def number(self, name: str, key: str, low: int, high: int) -> Iterator[Setting]:
        option = self._options.get(name)
        if option is None:
            return
        if _is_seconds(option.value) and low <= int(option.value) <= high:
            yield Setting(key, int(option.value), str(option.place))
        else:
            self._lose(option, f"it is no whole number in {low}..{high}")

    def qos(self) -> Setting:
        """The highest QoS of the topics: a message never crosses with less than its line asks."""
        found = sorted({line.qos for line in self._topics})
        note = "The highest of the topics; those of a lower QoS may cross with this one."
        return Setting("qos", found[-1], note if len(found) > 1 else "")

    def _encrypted(self) -> bool:
        own = self._options.get("bridge_tls_use_os_certs")
        trusted = own is not None and own.value.lower() == "true"
        return trusted or any(name in self._options for name in OF_TLS)

    def _plain(self, option: Option, text: str) -> str:
        """`text`, unless the configuration would replace a part of it."""
        if REFERENCE not in text:
            return text
        self._lose(option, f"it holds {REFERENCE!r}, which the configuration would replace")
        return ""

    def _lose(self, option: Option, reason: str) -> None:
        found = Left(option.place, f"option {option.name!r}", reason)
        if found not in self._left:
            self._left.append(found)


def _is_seconds(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10  # noqa: PLR2004  # U32 and less


def _bounds(name: str) -> tuple[int, int]:
    facts = next(each.metadata for each in fields(MqttSettings) if each.name == name)
    return int(facts["minimum"]), int(facts["maximum"])
