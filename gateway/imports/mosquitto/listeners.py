"""Listeners of mosquitto.conf, and the one that the gateway reaches the broker by.

A listener: port, address, options. Read: a `listener` line begins one, and the options below it
belong to it, to the next `listener` line or the end of the file. The options above the first one
belong to the default listener, as do `port` and `bind_address` anywhere. Chosen: a listener of
MQTT without TLS and without a mount point, over TCP before WebSocket, and at the loopback or any
address before the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.endpoints.broker_names import is_own_machine
from gateway.imports.source_lines import OmittedLine, SourceLine

DEFAULT_PORT: Final = 1883
LISTENER_OPTIONS: Final = frozenset(
    {
        "bind_interface",
        "cafile",
        "capath",
        "certfile",
        "ciphers",
        "ciphers_tls1.3",
        "crlfile",
        "keyfile",
        "max_connections",
        "mount_point",
        "protocol",
        "psk_hint",
        "require_certificate",
        "tls_version",
        "allow_anonymous",
        "listener_allow_anonymous",
    }
)
_STARTS_NONE: Final = frozenset({"allow_anonymous", "bind_interface", "protocol"})  # measured, 2.0
_ANY: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  # read, and not listened at


@dataclass(slots=True)
class Listener:
    """A listener. Mutable: the parser adds its options.

    `location` is absent for the default listener until a line gives it something.
    """

    location: SourceLine | None = None
    port: int = DEFAULT_PORT
    address: str = ""  # or the path of a socket, with the port 0
    options: dict[str, tuple[SourceLine, str]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The host at which a gateway beside the broker finds it."""
        return "localhost" if not self.port or self.address in _ANY else self.address

    @property
    def has_tls(self) -> bool:
        return "certfile" in self.options

    @property
    def has_websocket(self) -> bool:
        return self._protocol == "websockets"

    @property
    def _protocol(self) -> str:
        return self.options["protocol"][1] if "protocol" in self.options else "mqtt"

    @property
    def is_near(self) -> bool:
        """Whether a gateway beside the broker reaches it, whatever the host's addresses are."""
        return self.address in _ANY or is_own_machine(self.address)

    def obstacles(self) -> Iterator[str]:
        """Yield why the gateway cannot use it as it is."""
        values = {name: value for name, (_, value) in self.options.items()}
        if not self.port:
            yield "is a socket of the file system"
        if self._protocol not in {"mqtt", "websockets"}:
            yield "speaks no MQTT"
        if self.has_tls:
            yield "needs TLS"
        if "psk_hint" in values:
            yield "needs a pre-shared key"
        if "mount_point" in values:
            yield "has a mount point, behind which names are shorter than those of a bridge"
        if values.get("bind_interface", "lo") != "lo":
            yield "has the address of a network interface"


@dataclass(frozen=True, slots=True)
class Listeners:
    """All listeners of a broker in the order of the file, the default one first."""

    default: Listener
    explicit: Sequence[Listener]
    per_listener: bool  # `per_listener_settings`: each has an `allow_anonymous` of its own
    anonymous: tuple[SourceLine, str] | None  # the last `allow_anonymous`, and its value

    def open(self) -> list[Listener]:
        """Return those that mosquitto opens."""
        given = self.default.location is not None or set(self.default.options) - _STARTS_NONE
        return [*([self.default] if given or not self.explicit else []), *self.explicit]

    def chosen(self) -> Listener:
        """Return the one to use; when none is usable as it is, the one that lacks least."""

        def rank(each: Listener) -> tuple[int, bool, bool]:
            return len([*each.obstacles()]), each.has_websocket, not each.is_near

        return min(self.open(), key=rank)

    def refusing(self) -> SourceLine | None:
        """Return the line that refuses clients without a user at the chosen listener."""
        found = self.anonymous
        if self.per_listener:
            found = self.chosen().options.get("allow_anonymous")
        found = self.chosen().options.get("listener_allow_anonymous", found)
        return found[0] if found is not None and found[1] == "false" else None

    def says_nothing_about_users(self) -> bool:
        """Whether mosquitto 2.0 refuses clients without a user by default."""
        named = "allow_anonymous", "listener_allow_anonymous"
        return (
            self.anonymous is None
            and not any(name in each.options for each in self.open() for name in named)
            and bool(self.explicit)
        )

    def lost(self, near: SourceLine) -> Iterator[OmittedLine]:
        """Yield the choice that is left to a person; `near` is where nothing else is written."""
        chosen = self.chosen()
        if not [*chosen.obstacles()]:
            return
        reasons = "; ".join(
            f"{each.location or 'the default one'} {' and '.join(each.obstacles())}"
            for each in self.open()
        )
        advice = "write `listener 1883 127.0.0.1` in mosquitto.conf and its port at the endpoint"
        if [*chosen.obstacles()] == ["needs TLS"]:
            advice = (
                "name the certificate authority of its `certfile` at the endpoint, as"
                " `tls: {ca_file: ...}`, and the host of its certificate"
            )
        reason = f"the gateway can use no listener as it is: {reasons}; {advice}"
        yield OmittedLine(chosen.location or near, "the listener for the gateway", reason)
