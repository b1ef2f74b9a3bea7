"""The row of one kind of endpoint: every fact about it that other parts of the gateway read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.endpoints.settings.base import EndpointSettings


@dataclass(frozen=True, slots=True)
class Starter:
    """One choice of `gateway init`.

    `settings` are the lines of the endpoint as YAML, behind `kind`. They are a format with the
    fields `host`, `port`, `address` (HOST:PORT), `name` of the endpoint, `variable` (the name in
    capitals), `gateway`, `route`, `patterns` (a list of those that select the names) and `keys`
    (the same in words). `target` are further lines of a target, and `needs` says what it needs
    beyond its settings.
    """

    dialect: str
    port: int  # of its brokers, where no address is given
    settings: str
    target: str = ""
    needs: str = ""


@dataclass(frozen=True, slots=True)
class EndpointKind:
    """One kind of endpoint.

    `module` has the functions `open_source` and `open_sink`. Without `typed_properties` the
    properties of a message are texts, unless another gateway sent it. `gives_identity`: a message
    has the same id at each delivery, whoever published it. `payload_encoding` says how a driver
    changes payloads behind the hash of a delivered row, as a clause: then only a tap at the target
    proves them. Empty when the bytes of the hash are sent. `in_process`: the broker ends with the
    process, and its messages with it.

    `drops_setting` is the key that asks the broker how many messages it has dropped, and
    `session_setting` the key for how long the broker keeps the session of a dead member of a
    share; "" where there is none. `origin_remedy` says what makes its messages carry the origin
    path, where the settings decide that.

    `makes` is what its sources make at the broker and leave there at their end, such as `queue`;
    its module then has the functions of `endpoints.made`. "" where they leave nothing.

    `observer` has the settings of a further reader that takes no message from another one and
    leaves nothing at the broker; None where the kind has no such reader.

    `starters` are its choices in `gateway init`, by name.
    """

    name: str
    settings: type[EndpointSettings]
    module: str
    extra: str | None = None  # the optional dependencies with the driver
    typed_properties: bool = True
    gives_identity: bool = False
    payload_encoding: str = ""
    in_process: bool = False
    carries_name: bool = False  # its copies have the name at their source as `gateway_name`
    has_partitions: bool = False  # its sinks send to the partition in `gateway_partition`
    leaves_will: bool = False  # its sinks tell a state (`TellsState`)
    retains: bool = False  # its brokers send retained messages to a new subscription
    drops_setting: str = ""
    session_setting: str = ""
    origin_remedy: str = "let no other bridge join the same brokers"
    makes: str = ""
    observer: Mapping[str, object] | None = None
    starters: Mapping[str, Starter] = field(default_factory=dict)
