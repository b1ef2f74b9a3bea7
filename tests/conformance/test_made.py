"""A source has in its memory what it leaves at its broker, and that can be ended, at each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.endpoints.base import Source
from gateway.endpoints.made import ABSENT, UNKNOWN, Made
from gateway.endpoints.registry import count_held, end_made, find_kind
from gateway.endpoints.source_memory import MADE, KeepsMemory, read_made
from gateway.model.message import Headers, Message
from gateway.runtime.inbound.source_memories import MemoryFile, SourceMemories
from tests.endpoints.exchange import collect, opened, send_all
from tests.endpoints.systems import NIGHTLY, PLACES, SYSTEMS, System

ROLE = "kind endpoint"
SENT = 5
OF_A_CLIENT = frozenset({"session", "durable subscription"})  # no other client can have made it


@pytest.fixture(
    params=[
        pytest.param(each, id=name, marks=[pytest.mark.nightly] if name in NIGHTLY else [])
        for name, each in {**SYSTEMS, **PLACES}.items()
    ]
)
def system(request: pytest.FixtureRequest) -> System:
    found: System = request.param(request)
    return found


@pytest.mark.broker
def test_what_a_source_made_is_known_and_ends(system: System, tmp_path: Path) -> None:
    found = _made_by(system.source("t"), tmp_path / "memory")
    leaves = system.keeps and system.outlives and bool(find_kind(system.settings).makes)
    assert len(found) <= 1
    if not leaves or not found:
        assert not found
        assert not leaves or "queue:" in system.rest(("t",))  # that of others
        return

    (made,) = found
    assert made.kind == find_kind(system.settings).makes
    assert made.broker == system.settings.broker_key
    others = _made_by(system.source("t"), tmp_path / "other")  # of a gateway that finds it there
    assert others == ([made] if made.kind in OF_A_CLIENT else [])
    _send(system, range(SENT))
    held = count_held(system.settings, made)
    assert held in {UNKNOWN, (SENT, True)}
    end_made(system.settings, made)
    assert count_held(system.settings, made) in {UNKNOWN, ABSENT}
    end_made(system.settings, made)  # it is gone

    system.forget()
    if held == UNKNOWN:  # the broker kept nothing
        with opened(again := system.source("t")):
            _send(system, [SENT])
            (message,) = collect(again, 1)
            assert message.payload == b"%d" % SENT


def _made_by(source: Source, memory: Path) -> list[Made]:
    """Open the source with what `memory` has; return what that says it made."""
    memories = SourceMemories(MemoryFile(memory))
    if isinstance(source, KeepsMemory):
        source.memory.keep_in(memories, ROLE)
    with opened(source):
        pass
    return [*read_made((memories.load(ROLE) or {}).get(MADE, []))]


def _send(system: System, numbers: range | list[int]) -> None:
    headers = Headers(mode=system.mode)
    with opened(sink := system.sink()):
        send_all(sink, [Message(system.address("t", "x"), b"%d" % n, headers) for n in numbers])
