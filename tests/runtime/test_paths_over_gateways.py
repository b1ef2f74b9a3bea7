"""Paths over several gateways, without names of brokers: equal addresses, reloads and replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgpack
import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Headers, Message
from gateway.runtime.delivery.backlog import SpoolLimits
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.gateway import Gateway
from gateway.runtime.outbound.dead_letters import DeadLetters
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.record.batch_recorder import BatchRecorder
from tests.archived import archived
from tests.runtime.gateway.running import BrokerClient
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")


CONFIG = """\
gateway: {{name: {name}}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
endpoints:
  {name}-source: {{kind: memory, broker: {source}}}
  {name}-target: {{kind: memory, broker: {target}}}
routes:
  {route}:
    from: {{endpoint: {name}-source, pattern: "a/{{rest...}}"}}
    to: {{endpoint: {name}-target, template: "a/{{rest...}}"}}
    direction: {direction}
    archive_payload: true
"""
NAMES = "xyz"


class Site:
    """A gateway between two brokers in memory, with a folder of its own."""

    def __init__(self, folder: Path, source: str, target: str, direction: str = "forward") -> None:
        self.folder = folder / f"{source}-{target}"
        self.folder.mkdir()
        self.file = self.folder / "gateway.yaml"
        self.source, self.target, self.direction = source, target, direction
        self.write("relay")

    def write(self, route: str, more: str = "") -> None:
        text = CONFIG.format(
            name=f"g-{self.source}", folder=self.folder, source=self.source, target=self.target,
            route=route, direction=self.direction,
        )  # fmt: skip
        self.file.write_text(text + more)

    @contextmanager
    def running(self) -> Iterator[Gateway]:
        gateway = Gateway(load(self.file))
        gateway.start()
        try:
            until(lambda: all(lane.direct for lane in gateway.lanes.values()))
            until(lambda: all(each.connection.value == "connected" for each in gateway.states))
            yield gateway
        finally:
            gateway.stop(PATIENCE)

    def outcomes(self) -> list[str]:
        """The rules of what did not go on, when the gateway is stopped."""
        rows = archived(self.folder)
        return [str(row["rule"]) for row in rows if row["leg"] in {"cut", "dead"}]


def settled(gateways: Sequence[Gateway]) -> Callable[[], bool]:
    """Whether gateways receive nothing between two calls."""
    before = -1

    def is_quiet() -> bool:
        nonlocal before
        counters = [each for gateway in gateways for each in gateway.counters.values()]
        found = sum(each.received + each.loops + each.duplicates for each in counters)
        before, last = found, before
        return found == last

    return is_quiet


class Ring:
    """Three gateways in a ring, each with a client at its source. Mutable: clients receive."""

    def __init__(self, folder: Path, stack: ExitStack, first: int = 3) -> None:
        """Run the `first` gateways; `run` runs the others."""
        self.sites = [Site(folder, *pair) for pair in ("xy", "yz", "zx")]
        self.clients = [stack.enter_context(closing(BrokerClient(each, "mqtt"))) for each in NAMES]
        self.gateways: list[Gateway] = []
        self._stack = stack
        self.run(first)

    def run(self, upto: int = 3) -> None:
        started = self.sites[len(self.gateways) : upto]
        self.gateways += [self._stack.enter_context(each.running()) for each in started]

    def copies(self) -> Counter[object]:
        """The payloads that arrived at each broker, when nothing is on its way."""
        until(settled(self.gateways), every=0.5)
        return Counter(
            (name, message.payload)
            for name, client in zip(NAMES, self.clients, strict=True)
            for message in client.receive_available()
        )


def test_two_brokers_with_one_address_get_each_others_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sites know their broker as `localhost`, and one hub."""
    address = property(lambda self: f"memory:{self.broker.partition('-')[0]}")
    monkeypatch.setattr(MemorySettings, "broker_key", address)
    with ExitStack() as stack:
        brokers = ("localhost-a", "localhost-c", "hub")
        a, c, hub = (stack.enter_context(closing(BrokerClient(each, "mqtt"))) for each in brokers)
        sites = [Site(tmp_path, each, "hub", "both") for each in brokers[:2]]
        gateways = [stack.enter_context(each.running()) for each in sites]
        a.publish(Message("a/1", b"from a"))
        hub.publish(Message("a/2", b"from the hub"))
        until(settled(gateways), every=0.5)
        arrived = [sorted(m.payload for m in each.receive_available()) for each in (a, c, hub)]  # type: ignore[type-var]  # bytes were sent

    assert arrived == [[b"from a", b"from the hub"]] * 3


def test_a_ring_ends_after_a_reload_that_renames_a_route(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ring = Ring(tmp_path, stack)
        ring.clients[0].publish(Message("a/1", b"before"))
        before = ring.copies()
        first = ring.sites[0]
        first.write("renamed")
        ring.gateways[0].reload(load(first.file))
        ring.clients[0].publish(Message("a/1", b"after"))
        after = ring.copies()

    assert before == {("x", b"before"): 2, ("y", b"before"): 1, ("z", b"before"): 1}
    assert after == {("x", b"after"): 2, ("y", b"after"): 1, ("z", b"after"): 1}
    assert [each.outcomes() for each in ring.sites] == [["loop", "loop"], [], []]


def test_a_message_on_its_way_when_its_route_is_renamed_ends_where_it_was(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ring = Ring(tmp_path, stack, first=1)
        ring.clients[0].publish(Message("a/1", b"m"))
        (copy,) = ring.clients[1].receive(1)
        first = ring.sites[0]
        first.write("renamed")
        ring.gateways[0].reload(load(first.file))
        ring.run()
        ring.clients[1].publish(copy)
        copies = ring.copies()

    assert copies == {("x", b"m"): 2, ("y", b"m"): 1, ("z", b"m"): 1}
    assert [each.outcomes() for each in ring.sites] == [["loop"], [], []]


def test_a_replay_of_the_archive_goes_round_a_ring_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ring = Ring(tmp_path, stack)
        ring.clients[0].publish(Message("a/1", b"m"))
        ring.copies()
        site = ring.sites[0]
        soon = datetime.now(UTC) + timedelta(minutes=1)
        ring.gateways[0].stop(PATIENCE)
        archived(site.folder)
        span = ["--from", (soon - timedelta(hours=1)).isoformat(), "--to", soon.isoformat()]
        archive = str(site.folder / "archive")
        with site.running() as again:
            ring.gateways[0] = again
            assert (
                main(["replay", archive, "--config", str(site.file), "--route", "relay", *span])
                == 0
            )
            copies = ring.copies()

    assert copies == {("x", b"m"): 1, ("y", b"m"): 1, ("z", b"m"): 1}
    assert site.outcomes() == ["loop", "loop"]


OLD = Headers(origin=("@0123456789ab", "g-x/relay", "@ba9876543210", "g-y/relay"))


@pytest.mark.parametrize("rendered", [True, False], ids=["copy", "as-received"])
def test_a_dead_letter_of_before_this_proof_goes_round_a_ring_once(
    tmp_path: Path, *, rendered: bool
) -> None:
    """Its path has no proof: it is dropped, and the message goes on."""
    with ExitStack() as stack:
        ring = Ring(tmp_path, stack)
        site = ring.sites[0]
        ring.gateways[0].stop(PATIENCE)
        letter = DeadLetter(
            0, 1, bytes(16), "relay", "g-x-source", "a/1", "g-x-target",
            "g-x-target" if rendered else "",
            "rule", "why", 1, Message("a/1", b"old", OLD),
        )  # fmt: skip
        database = SpoolDatabase(site.folder / "spool")
        DeadLetters(database, 1 << 20).put([letter], lambda: None)
        assert database.flush(PATIENCE)
        database.close(PATIENCE)
        with site.running() as again:
            ring.gateways[0] = again
            assert main(["dead-letters", "replay", str(site.file)]) == 0
            copies = ring.copies()

    times = (1, 2, 1) if rendered else (1, 1, 1)
    assert copies == {(name, b"old"): n for name, n in zip(NAMES, times, strict=True)}
    assert (
        [each.outcomes() for each in ring.sites] == [[], ["loop"], []]
        if rendered
        else [["loop"], [], []]
    )


def test_a_spooled_copy_of_before_this_proof_goes_round_a_ring_once(tmp_path: Path) -> None:
    """It is sent as it was stored, and the next gateway drops its path."""
    with ExitStack() as stack:
        ring = Ring(tmp_path, stack)
        site = ring.sites[0]
        ring.gateways[0].stop(PATIENCE)
        database = SpoolDatabase(site.folder / "spool")
        recorder = BatchRecorder({}, None, lambda _letters, _done: None)
        spool = Spool("g-x-target", database, recorder, SpoolLimits(1 << 20))
        fields = {"origin": [*OLD.origin], "mode": int(OLD.mode)}
        body = msgpack.packb([[fields], [["a/1", b"old", 0]], []])  # as it was written
        spool.write(1, 1, (body, {"relay"}), lambda: None)
        assert database.flush(PATIENCE)
        database.close(PATIENCE)
        with site.running() as again:
            ring.gateways[0] = again
            copies = ring.copies()

    assert copies == {("x", b"old"): 1, ("y", b"old"): 2, ("z", b"old"): 1}
    assert [each.outcomes() for each in ring.sites] == [[], ["loop"], []]
