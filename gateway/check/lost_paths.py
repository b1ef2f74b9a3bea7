"""Note where a broker gives copies to another protocol, which does not show their origin path.

Each kind of endpoint has its own names for path and proof: what MQTT sends to RabbitMQ, an AMQP
reader gets without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gateway.config.build_endpoint import Endpoint
from gateway.config.load import Configuration
from gateway.endpoints.broker_names import is_local_host
from gateway.endpoints.registry import find_kind
from gateway.errors import ConfigError
from gateway.proofs.reverse_route import REVERSE_SUFFIX

_HINT: Final = (
    "use one kind of endpoint for a broker, or leave the names of one route out of the other"
    " (`exclude`)"
)


def lost_paths(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a note for each end of a route in both directions whose copies another kind reads."""
    readers = sorted({route.endpoint for route in configuration.routes})
    for route in configuration.routes:
        if not route.inverse or route.name.endswith(REVERSE_SUFFIX):
            continue
        for sends in (route.endpoint, route.targets[0].endpoint):
            for reads in readers:
                ends = configuration.endpoints[sends], configuration.endpoints[reads]
                if not _at_one_broker(*ends):
                    continue
                reason = (
                    f"route {route.name!r}: where {reads!r} reads what was sent to {sends!r}, at"
                    " one broker, the copy has no origin path: a loop is not seen there"
                )
                location = configuration.location_of(("routes", route.name, "direction"))
                yield location.error("path-lost", reason, _HINT, "note")


def _at_one_broker(one: Endpoint, other: Endpoint) -> bool:
    """Return whether endpoints of two kinds are at one broker: by its name, or by its host."""
    if find_kind(one.settings) is find_kind(other.settings):
        return False
    if one.broker.given and one.broker.given == other.broker.given:
        return True
    hosts = ({each.host for each in end.settings.servers()} for end in (one, other))
    return any(not is_local_host(host) for host in set.intersection(*hosts))
