"""Import of the bridges of NanoMQ and EMQX 4, as connections of the form that mosquitto has.

Their keys are other words for mosquitto's options; what has no option there is listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.endpoints.settings.base import U16
from gateway.imports.document import Document
from gateway.imports.mosquitto.config_file import BridgeConnection, MosquittoConfig, Option
from gateway.imports.mosquitto.endpoints import WEBSOCKET_PATH
from gateway.imports.mosquitto.importer import bridged_document
from gateway.imports.mosquitto.listeners import DEFAULT_PORT, Listener, Listeners
from gateway.imports.mosquitto.topic_lines import (
    Direction,
    TopicError,
    TopicLine,
    check_topic,
)
from gateway.imports.nanomq.settings_file import Setting, read_settings
from gateway.imports.source_lines import LineStatus, OmittedLine, SourceLine

_OPTIONS: Final[Mapping[str, str]] = {
    "clientid": "remote_clientid",
    "client_id": "remote_clientid",
    "username": "remote_username",
    "password": "remote_password",
    "cacertfile": "bridge_cafile",
    "certfile": "bridge_certfile",
    "keyfile": "bridge_keyfile",
    "conn_properties.maximum_packet_size": "bridge_max_packet_size",
    "conn_properties.receive_maximum": "bridge_receive_maximum",
    "conn_properties.session_expiry_interval": "bridge_session_expiry_interval",
}
_PREFIXES: Final = ("connector.", "ssl.", "tls.", "ssl_opts.")
_VERSIONS: Final = {"5": "mqttv50", "4": "mqttv311", "3": "mqttv31"}
_NO_EFFECT: Final = frozenset(
    {
        "address",
        "batch_size",
        "bridge_mode",
        "clean_start",
        "enable",
        "forward_mountpoint",
        "keepalive",
        "max_inflight",
        "max_inflight_size",
        "max_parallel_processes",
        "max_recv_queue_len",
        "max_send_queue_len",
        "mqtt_proto_ver",
        "name",
        "parallel",
        "proto_ver",
        "receive_mountpoint",
        "reconnect_interval",
        "retry_interval",
        "server",
        "ssl",
        "ssl_mode",
        "start_type",
    }
)
_TRUE: Final = frozenset({"true", "on", "1", "yes"})
_TOPICS: Final = ("forwards", "subscription", "subscriptions")
_SERVER: Final = re.compile(
    r"(?:(?P<scheme>[a-z+-]+)://)?(?P<host>\[[^\]]*\]|[^:/\[\]]+)(?::(?P<port>\d{1,5}))?"
    r"(?P<path>/[!-~]*)?"
)
_BOUND: Final = re.compile(r"(?:[a-z+-]+://)?(\[[^\]]*\]|[^:]*?):?(\d{1,5})")
_PLAIN: Final = frozenset({"", "mqtt", "mqtt-tcp", "tcp", "nmq-tcp"})
_TLS: Final = frozenset({"mqtts", "ssl", "tls", "tls+mqtt-tcp", "wss"})
_WEB_PORTS: Final = {"ws": 80, "wss": 443}
_NO_PATH: Final = re.compile("[?#]|\\$\\{")  # a query may have a secret
DEFAULT_QOS: Final = 1  # EMQX 4; NanoMQ keeps that of each message
_DURATION: Final = re.compile(r"(\d{1,9})\s*(s|sec|m|h)?")
_SECONDS: Final = {"m": 60, "h": 3600}
_BROKERS: Final = (("mqtt",), ("sqlite",))  # caches of the broker
_REASONS: Final[Mapping[str, str]] = {
    "key_password": "write it as `key_password` under `tls`, by a reference",
    "will": "write a `state`: the gateway retains 1 there, and its will is 0",
}
_OTHER_KEY: Final = "no route and no endpoint has such a setting"
_STAYS: Final = "it is a setting of the broker and not of a bridge"


@dataclass(slots=True)
class _Bridge:
    """The settings of one bridge. Mutable: they are added one by one."""

    location: SourceLine
    name: str
    settings: dict[str, Setting] = field(default_factory=dict)

    def text(self, *keys: str) -> str:
        """Return the value of the first of these keys that the bridge has."""
        return next((self.settings[key].value for key in keys if key in self.settings), "")

    def is_on(self, *keys: str) -> bool:
        return self.text(*keys).lower() in _TRUE


def import_nanomq(file: str, data: bytes, site: str = "") -> Document:
    """Import the MQTT bridges of nanomq.conf, nanomq_bridge.conf or emqx_bridge_mqtt.conf.

    Raises:
        GatewayError: the file is not readable.
    """
    omitted: list[OmittedLine] = []
    bridges: dict[tuple[str, ...], _Bridge] = {}
    others: list[Setting] = []
    for setting in read_settings(file, data):
        place = _place(setting.path)
        if place is None:
            others.append(setting)
            continue
        key = setting.path[len(place) :]
        name = place[-1] if len(place) > 2 else "bridge"  # without a name
        bridge = bridges.setdefault(place, _Bridge(setting.location, name))
        bridge.settings[_without_prefix(".".join(key))] = setting
    connections = tuple(filter(None, (_connection(each, omitted) for each in bridges.values())))
    omitted += _others(others)
    secrets = [each.text("password") for each in bridges.values()]
    broker = MosquittoConfig(connections, _listeners(others), tuple(omitted), tuple(secrets))
    return bridged_document("nanomq", (file,), broker, site)


def _place(path: Sequence[str]) -> tuple[str, ...] | None:
    """Return the path of the bridge that a setting belongs to; None for a setting of the broker."""
    if path[:2] == ("bridges", "mqtt") and len(path) > 3 and path[2] not in {"cache", "sqlite"}:
        return tuple(path[:4] if path[3].isdecimal() else path[:3])
    if path[:2] == ("bridge", "mqtt"):
        named = len(path) > 3 and path[2] not in _TOPICS and not path[3].isdecimal()
        return tuple(path[:3] if named else path[:2])
    return None


def _without_prefix(key: str) -> str:
    for prefix in _PREFIXES:
        if key.startswith(prefix) and key not in {"ssl.enable", "tls.enable"}:
            key = key.removeprefix(prefix)
    return key.replace("connect.properties.", "conn_properties.")


def _connection(bridge: _Bridge, omitted: list[OmittedLine]) -> BridgeConnection | None:
    """Return the connection of a bridge; settings without an equivalent are added to `omitted`."""
    name = bridge.text("name") or bridge.name
    item = f"bridge {name!r}"
    server = _SERVER.fullmatch(bridge.text("server", "address").strip())
    reason = ""
    if "enable" in bridge.settings and not bridge.is_on("enable"):
        reason = "it is off there"
    elif server is None or not _is_readable(server):
        reason = "its server does not read mqtt-tcp://HOST:PORT or ws://HOST:PORT/PATH"
    elif (server["scheme"] or "") not in _PLAIN | _TLS | {*_WEB_PORTS}:
        reason = (
            f"the gateway does not speak {server['scheme']}; it needs MQTT over TCP, TLS or"
            " WebSocket"
        )
    if reason or server is None:
        omitted.append(OmittedLine(bridge.location, item, reason))
        return None
    connection = BridgeConnection(bridge.location, name)
    for key, value, origin in _options(bridge, server):
        connection.options[key] = Option(origin.location, origin.path[-1], value)
    for setting, make in _topics(bridge):
        try:
            connection.topics.append(make())
        except TopicError as error:
            omitted.append(OmittedLine(setting.location, f"a topic of {item}", str(error)))
    omitted += _unread(bridge, item)
    return connection


def _is_readable(server: re.Match[str]) -> bool:
    path = server["path"] or "/"
    has_path = server["scheme"] in _WEB_PORTS and not _NO_PATH.search(path)
    return int(server["port"] or 0) <= U16 and (has_path or path == "/")


def _options(bridge: _Bridge, server: re.Match[str]) -> Iterator[tuple[str, str, Setting]]:
    """Yield the options of mosquitto that say the same, each with its setting."""
    known = bridge.settings
    address = known.get("server") or known["address"]
    port = server["port"] or _WEB_PORTS.get(server["scheme"], DEFAULT_PORT)
    yield "address", f"{server['host']}:{port}", address
    if server["scheme"] in _WEB_PORTS:
        yield WEBSOCKET_PATH, server["path"] or "/", address
    yield "local_cleansession", "false", address
    yield "notifications", "false", address
    if not bridge.is_on("bridge_mode"):
        yield "try_private", "false", address
    encrypted = server["scheme"] in _TLS or bridge.is_on(
        "ssl.enable", "tls.enable", "ssl", "ssl_mode"
    )
    for key, option in _OPTIONS.items():
        is_file = key in {"cacertfile", "certfile", "keyfile"}
        if key in known and known[key].value and (encrypted or not is_file):
            yield option, known[key].value, known[key]
    if encrypted:
        yield "bridge_tls_use_os_certs", "true", address
    for key in ("proto_ver", "mqtt_proto_ver"):
        if key in known:
            version = known[key].value.lower().removeprefix("mqtt").removeprefix("v")
            yield "bridge_protocol_version", _VERSIONS.get(version, version), known[key]
    if bridge.is_on("clean_start"):
        yield "cleansession", "true", known["clean_start"]
    if "keepalive" in known:
        yield "keepalive_interval", _seconds(known["keepalive"].value), known["keepalive"]


def _seconds(text: str) -> str:
    found = _DURATION.fullmatch(text.strip())
    return str(int(found[1]) * _SECONDS.get(found[2] or "", 1)) if found else text


def _topics(bridge: _Bridge) -> Iterator[tuple[Setting, _MakeTopic]]:
    """Yield each topic of the bridge, and the function that makes its line."""
    for key, direction in (
        ("forwards", Direction.OUT),
        ("subscription", Direction.IN),
        ("subscriptions", Direction.IN),
    ):
        mount = bridge.text(
            "forward_mountpoint" if direction is Direction.OUT else "receive_mountpoint"
        )
        for fields in _entries(bridge, key):
            yield next(iter(fields.values())), _MakeTopic(fields, direction, mount)


def _entries(bridge: _Bridge, key: str) -> Iterator[dict[str, Setting]]:
    """Yield the fields of each entry of a list; a text with commas has one field an entry."""
    found: dict[str, dict[str, Setting]] = {}
    for name, setting in bridge.settings.items():
        if name == key:
            for at, text in enumerate(setting.value.split(",")):
                if text.strip():
                    entry = Setting(setting.location, setting.path, text.strip())
                    found[f"{key}.,{at}"] = {"topic": entry}
        elif name.startswith(f"{key}."):
            number, _, rest = name.removeprefix(f"{key}.").partition(".")
            if number.isdecimal():
                found.setdefault(number, {})[rest or "topic"] = setting
            elif setting.value in {"0", "1", "2"}:  # EMQX: `subscriptions = {"cmd/#": 1}`
                topic = Setting(setting.location, setting.path, name.removeprefix(f"{key}."))
                found[name] = {"topic": topic, "qos": setting}
    yield from found.values()


@dataclass(frozen=True, slots=True)
class _MakeTopic:
    """One topic, still to be checked."""

    fields: Mapping[str, Setting]
    direction: Direction
    mount: str

    def __call__(self) -> TopicLine:
        """Return the topic as a line.

        Raises:
            TopicError: no route can express it.
        """
        near, far = self._text("local_topic"), self._text("remote_topic")
        outward = self.direction is Direction.OUT
        source, target = (near, far) if outward else (far, near)
        source = source or self._text("topic")
        if not source:
            raise TopicError("it has no topic to subscribe to")
        if "suffix" in self.fields and self._text("suffix"):
            raise TopicError("it has a suffix, and no template appends one to every name")
        mount = self._text("prefix") or self.mount
        if "${" in mount or "${" in target:
            raise TopicError("its prefix has a variable of the broker; write what it stands for")
        location = next(iter(self.fields.values())).location
        qos = int(self._text("qos")) if self._text("qos") in {"0", "1", "2"} else DEFAULT_QOS
        if target and target != source:
            line = TopicLine(location, source, self.direction, qos, name=mount + target)
        elif outward:
            line = TopicLine(location, source, self.direction, qos, remote=mount)
        else:
            line = TopicLine(location, source, self.direction, qos, local=mount)
        check_topic(line)
        return line

    def _text(self, key: str) -> str:
        return self.fields[key].value if key in self.fields else ""


def _unread(bridge: _Bridge, item: str) -> Iterator[OmittedLine]:
    """Yield the settings that have an effect and no equivalent, one line for a group of them."""
    seen: set[str] = set()
    for key, setting in bridge.settings.items():
        group = key if key.startswith("conn_properties.") else key.partition(".")[0]
        known = key in _NO_EFFECT or key in _OPTIONS or key.partition(".")[0] in _TOPICS
        quiet = group.startswith("quic") or group == "hybrid_bridging" or key.endswith("enable")
        if (
            not known
            and not quiet
            and group not in seen
            and setting.value not in {"", "0", "false"}
        ):
            seen.add(group)
            reason = _REASONS.get(group, _OTHER_KEY)
            yield OmittedLine(setting.location, f"{group!r} of {item}", reason)


def _others(settings: Sequence[Setting]) -> Iterator[OmittedLine]:
    """Yield one line for each section of the broker; bridges of another kind are lost."""
    seen: set[tuple[str, ...]] = set()
    for setting in settings:
        section = setting.path[:1]
        other = setting.path[0] in {"bridge", "bridges"} and setting.path[1:2] not in _BROKERS
        if other or setting.path[:2] == ("aws", "bridge"):
            section = setting.path[:2]
        if section not in seen:
            seen.add(section)
            name = ".".join(section)
            if len(section) > 1:
                reason = "it is no MQTT bridge; write endpoints and routes for it"
                yield OmittedLine(setting.location, f"section {name!r}", reason)
            else:
                status = LineStatus.STAYS_AT_BROKER
                yield OmittedLine(setting.location, f"section {name!r}", _STAYS, status)


def _listeners(settings: Sequence[Setting]) -> Listeners:
    """Return the listener of plain MQTT over TCP, which the default one stands for otherwise."""
    listener, anonymous = Listener(), None
    for setting in settings:
        path = setting.path
        is_url = path == ("url",) or (path[:2] == ("listeners", "tcp") and path[-1] == "bind")
        is_url |= path[:2] == ("listener", "tcp") and len(path) == 3  # EMQX 4
        bound = _BOUND.fullmatch(setting.value) if is_url else None
        if bound is not None and int(bound[2]) <= U16:
            listener.location, listener.port = setting.location, int(bound[2])
            listener.address = bound[1].strip("[]")
        elif setting.path[-1] == "allow_anonymous":
            anonymous = (setting.location, "true" if setting.value in _TRUE else "false")
    return Listeners(listener, (), per_listener=False, anonymous=anonymous)
