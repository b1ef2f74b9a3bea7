"""What a gateway made at its brokers, by the memory of its sources, without a running gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.config.load import Configuration
from gateway.endpoints.made import Held, Made
from gateway.endpoints.registry import count_held
from gateway.endpoints.source_memory import DAMAGE, MADE, Facts, read_made
from gateway.errors import EndpointError, GatewayError
from gateway.runtime import wiring
from gateway.runtime.inbound.source_memories import MemoryPlace, read_memories
from gateway.runtime.record.gap_rows import Watched


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing at a broker; `endpoint` is that of the configuration, or of the memory.

    `held` is None where the broker cannot be asked; `fault` says why.
    """

    role: str
    endpoint: str
    made: Made
    watched: Sequence[Watched] = ()
    held: Held | None = None
    fault: str = ""

    @property
    def may_lose(self) -> bool:
        """Whether messages may end with it."""
        return self.held is not None and self.held.messages != 0


def find_things(configuration: Configuration, place: MemoryPlace) -> list[Thing]:
    """Return what the memories at `place` say that the gateway made, by endpoint and name.

    Each broker is asked what it holds.

    Raises:
        GatewayError: the memories cannot be read, or are damaged.
    """
    memories = read_memories(place, configuration.gateway.name)
    found = [each for role in memories for each in _things_of(configuration, role, memories)]
    return sorted(found, key=lambda each: (each.endpoint, each.made))


def _things_of(
    configuration: Configuration, role: str, memories: Mapping[str, Facts]
) -> Iterator[Thing]:
    kind, _, name = role.partition(" ")
    try:
        everything = read_made(memories[role].get(MADE, []))
    except DAMAGE as error:
        raise GatewayError(f"the memory of {name} is damaged: {error}") from error
    known = wiring.watched_by_role(configuration)
    # a tap that a route has no more is a source of its endpoint still
    endpoint, watched = known.get(role) or known.get(f"{kind} {name.partition(' ')[0]}", (name, ()))
    for made in everything:
        thing = Thing(role, endpoint, made, watched)
        try:
            yield _asked(configuration, thing)
        except EndpointError as error:
            yield replace(thing, fault=str(error).removeprefix(f"{endpoint}: "))


def _asked(configuration: Configuration, thing: Thing) -> Thing:
    """Return the thing with what its broker tells. Raises EndpointError as `count_held` does."""
    if thing.endpoint not in configuration.endpoints:
        fault = "the endpoint left the configuration; write it again, to reach its broker"
        return replace(thing, fault=fault)
    settings = configuration.endpoints[thing.endpoint].settings
    if thing.made.broker not in {settings.broker_key, *settings.broker_keys}:
        fault = f"the endpoint is at {settings.broker_key} now; give it the earlier address again"
        return replace(thing, fault=fault)
    return replace(thing, held=count_held(settings, thing.made))
