"""Settings of the two endpoints of a bridge; values without an equivalent are omitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from gateway.endpoints.settings.base import U16
from gateway.endpoints.settings.mqtt import MAX_ALPN, MqttSettings
from gateway.imports.document import REFERENCE, EndpointSetting, Value
from gateway.imports.mosquitto.config_file import BridgeConnection, MosquittoConfig, Option
from gateway.imports.mosquitto.listeners import DEFAULT_PORT
from gateway.imports.mosquitto.options import NO_EFFECT, UNSUPPORTED
from gateway.imports.mosquitto.topic_lines import Direction
from gateway.imports.source_lines import OmittedLine, SourceLine
from gateway.setting import fields_by_key

VERSIONS = {"mqttv50": "5", "mqttv311": "3.1.1"}
TLS_FILES = {"ca_file": "cafile", "cert_file": "certfile", "key_file": "keyfile"}
TLS_OPTIONS = ("bridge_cafile", "bridge_capath", "bridge_psk")  # each enables encryption

WEBSOCKET_PATH = "websocket path"  # stands for what a URL of NanoMQ has; no option of mosquitto
MQTT_OVER_WEBSOCKET = EndpointSetting("websocket", "/mqtt", "mosquitto takes any path.")
MQTT_5 = EndpointSetting(
    "version",
    "5",
    "Its user properties carry the origin path, which prevents loops.",
)
MQTT_3 = EndpointSetting("version", "3.1.1", "mosquitto's default for a bridge.")
MQTT_5_FOR_RETAIN = EndpointSetting(
    "version",
    "5",
    "With it a subscription tells which messages are retained, as mosquitto learns as a bridge."
    " For a broker that supports 3.1.1 only, write that: live messages then arrive unretained.",
)
NO_RETAIN = (
    "with MQTT 3.1.1 a broker sends live messages without RETAIN, unless the client is a bridge as"
    ' mosquitto is; write `version: "5"` when the broker supports it'
)
NO_ORIGIN_PATH = (
    "it cannot carry the origin path, by which a route in both directions recognises its own"
    " messages; both endpoints use version 5. For a broker that supports 3.1.1 only, write that:"
    " the gateway then recognises its messages by name and payload"
)


def local_settings(
    connection: BridgeConnection,
    variable: str,
    broker: MosquittoConfig,
    omitted: list[OmittedLine],
    *,
    both: bool,
) -> tuple[EndpointSetting, ...]:
    """Return the settings of the local broker; `both`: a route uses both directions."""
    side = _BridgeSide(connection, variable, "local", omitted)
    listener = broker.listeners.chosen()
    clean = "local_cleansession" if "local_cleansession" in connection.options else "cleansession"
    return (
        EndpointSetting("kind", "mqtt"),
        EndpointSetting("host", listener.host),
        EndpointSetting("port", listener.port or DEFAULT_PORT, _listener_note(broker)),
        *((EndpointSetting("tls", {}),) if listener.has_tls else ()),
        *((MQTT_OVER_WEBSOCKET,) if listener.has_websocket else ()),
        *((MQTT_5,) if both else ()),
        *side.log_in(broker.listeners.refusing()),
        *side.session(clean),
        side.qos(),
        *side.on_too_long(),
    )


def _listener_note(broker: MosquittoConfig) -> str:
    found = broker.listeners.chosen().location
    notes = [f"{found}: the listener."] if found is not None else []
    if broker.listeners.says_nothing_about_users():
        notes.append(
            "No line has allow_anonymous: mosquitto 2.0 then takes clients with a user name only,"
            " so add `username` and `password`."
        )
    return " ".join(notes)


def remote_settings(
    connection: BridgeConnection, variable: str, omitted: list[OmittedLine], *, both: bool
) -> tuple[EndpointSetting, ...]:
    """Return the settings of the remote broker; options without an equivalent are omitted."""
    side = _BridgeSide(connection, variable, "remote", omitted)
    side.omit_unsupported()
    return (
        EndpointSetting("kind", "mqtt"),
        *side.address(),
        *side.tls(),
        *side.websocket(),
        side.version(both=both),
        *side.log_in(),
        *side.session("cleansession"),
        *side.number("keepalive_interval", "keepalive"),
        *side.backoff(),
        *side.packet(),
        *side.number("bridge_receive_maximum", "receive_window"),
        side.qos(),
        *side.on_too_long(),
    )


def done_anyway(connection: BridgeConnection) -> Iterator[str]:
    """Yield a note about each option with a value that asks for what the gateway does."""
    for name, value in NO_EFFECT.items():
        if (option := connection.options.get(name)) and option.value.lower() == value:
            yield f"{option.location}: {option.name} {option.value}, as the gateway does."


class _BridgeSide:
    """Settings of one side of a connection.

    Mutable: adds lines to `omitted`.
    """

    def __init__(
        self, connection: BridgeConnection, variable: str, side: str, omitted: list[OmittedLine]
    ) -> None:
        self._options, self._topics = connection.options, connection.topics
        self._location = connection.location
        self._variable, self._side, self._omitted = variable, side, omitted

    def omit_unsupported(self) -> None:
        """Omit every option that no endpoint has, with its reason."""
        for name, reason in UNSUPPORTED.items():
            option = self._options.get(name)
            if option is not None and option.value.lower() != NO_EFFECT.get(name):
                self._omit(option, reason)

    def address(self) -> Iterator[EndpointSetting]:
        """Yield host and port; several addresses have their ports in `host`."""
        option = self._options["address"]
        addresses = [*takewhile(lambda word: word[0] != "#", option.value.split())] or [""]
        (host, port), *others = [self._host_and_port(option, each) for each in addresses]
        if others:
            each = [f"{name}:{number or DEFAULT_PORT}" for name, number in ((host, port), *others)]
            yield EndpointSetting("host", ", ".join(each), str(option.location))
            if not self._is_true("round_robin"):
                note = "As mosquitto does without round_robin."
                yield EndpointSetting("fail_back", value=True, note=note)
        else:
            yield EndpointSetting("host", host, str(option.location))
            note = "" if port or not self._encrypted() else "mosquitto's default, also with TLS."
            yield EndpointSetting("port", port or DEFAULT_PORT, note)

    def _host_and_port(self, option: Option, address: str) -> tuple[str, int]:
        """Return the parts of one address; the port is 0 where it has none."""
        host, colon, text = address.rpartition(":")
        if not colon or not text.isdecimal():
            host, text = address, ""
        port = int(text[:6] or 0)
        if port > U16:
            self._omit(option, f"its port is above {U16}; {DEFAULT_PORT} is taken")
            port = 0
        return self._without_reference(option, host) or "localhost", port

    def tls(self) -> Iterator[EndpointSetting]:
        if not self._encrypted():
            reason = "the bridge is not encrypted without bridge_cafile or bridge_capath"
            for name in ("bridge_alpn", "bridge_certfile", "bridge_keyfile"):
                if (option := self._options.get(name)) is not None:
                    self._omit(option, reason)
            return
        values: dict[str, Value] = {}
        for key, name in TLS_FILES.items():
            option = self._options.get(f"bridge_{name}")
            if option and (file := self._without_reference(option, option.value)):
                values[key] = file
        option = self._options.get("bridge_alpn")
        if option and (protocol := self._without_reference(option, option.value)):
            if len(protocol.encode()) <= MAX_ALPN:
                values["alpn"] = [protocol]
            else:
                self._omit(option, f"its name is longer than {MAX_ALPN} bytes")
        note = "" if "ca_file" in values else "The CA certificates of the system are trusted."
        yield EndpointSetting("tls", values, note)

    def websocket(self) -> Iterator[EndpointSetting]:
        if (option := self._options.get(WEBSOCKET_PATH)) is not None:
            yield EndpointSetting("websocket", option.value)

    def version(self, *, both: bool) -> EndpointSetting:
        option = self._options.get("bridge_protocol_version")
        version = None if option is None else VERSIONS.get(option.value.lower())
        if both:
            if version != "5":
                location = self._location if option is None else option.location
                item = "MQTT 3.1.1 on the bridge"
                self._omitted.append(OmittedLine(location, item, NO_ORIGIN_PATH))
            return MQTT_5
        receives = any(line.direction is not Direction.OUT for line in self._topics)
        if option is None:
            return MQTT_5_FOR_RETAIN if receives else MQTT_3
        if version is None:
            self._omit(option, "an endpoint speaks 3.1.1 and 5.0; 3.1.1 is taken")
        private = self._options.get("try_private")  # without it the bridge gets no RETAIN, either
        if version != "5" and receives and (private is None or private.value != "false"):
            self._omit(option, NO_RETAIN)
        return EndpointSetting("version", version or "3.1.1")

    def on_too_long(self) -> Iterator[EndpointSetting]:
        if any(line.local or line.remote for line in self._topics):
            note = "A message whose name becomes too long by its new prefix is a dead letter."
            yield EndpointSetting("on_too_long", "refuse", note)

    def log_in(self, required: SourceLine | None = None) -> Iterator[EndpointSetting]:
        """Yield client id, user and password; `required`: the line that refuses other clients."""
        if (option := self._options.get(f"{self._side}_clientid")) is not None:
            yield EndpointSetting("client_id", self._without_reference(option, option.value))
        user = self._options.get(f"{self._side}_username")
        password = self._options.get(f"{self._side}_password")
        if user is not None:
            yield self._secret("username", str(user.location))
            if password is not None:
                yield self._secret("password", f"The password is in {password.location}.")
            return
        if password is not None:
            reason = "mosquitto uses it with a user name only, and there is no user name"
            self._omit(password, reason)
        if required is not None:
            note = f"{required}: allow_anonymous is false; a bridge needs no user there."
            yield self._secret("username", note)
            yield self._secret("password")

    def _secret(self, key: str, note: str = "") -> EndpointSetting:
        return EndpointSetting(key, f"${{env:{self._variable}_{key.upper()}}}", note)

    def session(self, name: str) -> Iterator[EndpointSetting]:
        option = self._options.get(name)
        if option is not None and option.value not in {"true", "false"}:
            self._omit(option, "it is neither true nor false")
        if option is not None and self._is_true(name):
            yield EndpointSetting("session_expiry", 0, f"{option.location}: a clean session.")
        elif self._side == "remote":
            yield from self.number("bridge_session_expiry_interval", "session_expiry")

    def backoff(self) -> Iterator[EndpointSetting]:
        option = self._options.get("restart_timeout")
        if option is None:
            return
        words = option.value.split()
        if not 0 < len(words) <= 2 or not all(map(_is_seconds, words)):  # base, cap
            self._omit(option, "it is not one or two numbers of seconds")
            return
        yield EndpointSetting("backoff_min", max(1, int(words[0])), str(option.location))
        yield EndpointSetting("backoff_max", max(1, int(words[-1])))

    def packet(self) -> Iterator[EndpointSetting]:
        option = self._options.get("bridge_max_packet_size")
        if option is not None and option.value != "0":  # no limit
            yield from self.number("bridge_max_packet_size", "max_packet")

    def number(self, name: str, key: str) -> Iterator[EndpointSetting]:
        option = self._options.get(name)
        if option is None:
            return
        facts = fields_by_key(MqttSettings)[key].metadata
        low, high = facts["minimum"], facts["maximum"]
        if _is_seconds(option.value) and low <= int(option.value) <= high:
            yield EndpointSetting(key, int(option.value), str(option.location))
        else:
            self._omit(option, f"it is not a whole number in {low}..{high}")

    def qos(self) -> EndpointSetting:
        """Highest QoS of the topics, so that no message crosses with a lower one than before."""
        found = sorted({line.qos for line in self._topics})
        note = (
            "The highest QoS of the topics; messages of topics with a lower one may cross with it."
        )
        return EndpointSetting("qos", found[-1], note if len(found) > 1 else "")

    def _encrypted(self) -> bool:
        return self._is_true("bridge_tls_use_os_certs") or any(
            name in self._options for name in TLS_OPTIONS
        )

    def _is_true(self, name: str) -> bool:
        return name in self._options and self._options[name].value == "true"

    def _without_reference(self, option: Option, text: str) -> str:
        """Return `text`, or omit the option when the configuration would replace a part of it."""
        if REFERENCE not in text:
            return text
        self._omit(option, f"it contains {REFERENCE!r}, which the configuration would replace")
        return ""

    def _omit(self, option: Option, reason: str) -> None:
        found = OmittedLine(option.location, f"option {option.name!r}", reason)
        if found not in self._omitted:
            self._omitted.append(found)


def _is_seconds(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10  # U32 and less
