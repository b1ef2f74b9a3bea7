"""`gateway withdraw` lists what the gateway made at its brokers, and ends it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from gateway.cli.live.withdraw import NOTHING
from gateway.config.load import load
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.nats import NatsSettings
from gateway.lease.file_store import FileLeaseStore
from gateway.lease.holder import LeaseHolder
from gateway.runtime.gateway import Gateway
from gateway.runtime.outbound.spool_db import connect
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.nats_server import StartNats
from tests.endpoints.exchange import opened, send_all
from tests.endpoints.nats.stream import ask, say
from tests.runtime.gateway.running import archive_rows, running, wait_until_connected
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

CONFIG = """\
gateway: {{name: plant-1}}
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {mqtt}}}
  bus: {{kind: nats, url: "{nats}", stream: T, create_stream: true, subjects: ["t.>"]}}
  out: {{kind: memory, dialect: mqtt, broker: withdraw}}
routes:
  a:
    from: {{endpoint: plant, pattern: "a/{{rest...}}"}}
    to: {{endpoint: out, template: "a/{{rest...}}"}}
  b:
    from: {{endpoint: bus, pattern: "t.{{rest...}}"}}
    to: {{endpoint: out, template: "b/{{rest...}}", on_too_long: refuse}}
{more}
"""
ARCHIVE = "archive: {path: archive}"
SPOOL = "spool: {path: spool}"
LETTER = (
    "INSERT INTO letters VALUES"
    " (1, 1, '', 'a', 'plant', 'a', 'out', 'out', 'loop', '', 1, '', 1, '', '')"
)


@dataclass(frozen=True)
class Plant:
    """A gateway that ran between two brokers, and stopped."""

    mqtt: str
    nats: str

    def config(self, more: str = ARCHIVE) -> str:
        return CONFIG.format(mqtt=self.mqtt.rpartition(":")[2], nats=self.nats, more=more)

    def ran(self, more: str = ARCHIVE) -> None:
        with running(self.config(more)):
            pass

    def fill(self, count: int) -> None:
        with opened(sink := make_sink(NatsSettings(url=self.nats))):
            send_all(sink, [say(number) for number in range(count)])

    @property
    def session(self) -> str:
        return f"plant: session plant-1-plant at mqtt://{self.mqtt}: an unknown number of messages"

    def consumer(self, state: str) -> str:
        key = NatsSettings(url=self.nats).broker_key
        return f"bus: consumer plant-1-bus- of T at {key}: {state}"


@pytest.fixture
def plant(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start_mosquitto: StartMosquitto,
    start_nats: StartNats,
) -> Plant:
    monkeypatch.chdir(tmp_path)
    return Plant(f"127.0.0.1:{start_mosquitto().port}", start_nats().url)


def withdraw(capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> list[str]:
    """Return the lines that the command prints."""
    capsys.readouterr()
    assert main(["withdraw", "gateway.yaml", *options]) == status
    printed = capsys.readouterr()
    return [*printed.out.splitlines(), *printed.err.splitlines()]


@pytest.mark.parametrize("more", [ARCHIVE, SPOOL])
def test_the_list_has_what_the_gateway_made(
    plant: Plant, more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran(more)
    plant.fill(3)
    memory = [each.read_bytes() for each in Path().rglob("*.memory")]

    for _ in range(2):  # it changes nothing
        assert withdraw(capsys)[:2] == [plant.consumer("3 messages"), plant.session]
    assert [each.read_bytes() for each in Path().rglob("*.memory")] == memory


def test_what_cannot_be_reached_is_listed_with_the_reason(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    text = plant.config().replace("bus:", "other:").replace("endpoint: bus", "endpoint: other")
    Path("gateway.yaml").write_text(text.replace("127.0.0.1, port", "127.0.0.9, port"))

    bus, session = withdraw(capsys)[:2]
    assert "the endpoint left the configuration, and nothing reads this any more" in bus
    assert bus.endswith("run gateway withdraw CONFIG --yes --only plant-1-bus-")
    assert "; give it the earlier address again" in session


def test_what_an_endpoint_left_that_is_gone_ends_when_it_is_written_again(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    without = plant.config().partition("  b:\n")[0]
    bus = next(line for line in without.splitlines() if line.startswith("  bus:"))
    with running(without.replace(f"{bus}\n", "") + ARCHIVE):  # the memory outlives this run
        pass
    assert "left the configuration" in withdraw(capsys)[0]

    Path("gateway.yaml").write_text(without + ARCHIVE)  # the endpoint, without a route
    assert withdraw(capsys, "--yes", "--only", "plant-1-bus-") == [plant.consumer("ended")]
    assert withdraw(capsys)[:-1] == [plant.session]


def test_an_address_in_the_list_is_no_secret(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    monkeypatch.setenv("HOST", "127.0.0.1")
    text = Path("gateway.yaml").read_text()
    Path("gateway.yaml").write_text(text.replace("host: 127.0.0.1", 'host: "${env:HOST}"'))

    assert withdraw(capsys)[:-1] == [plant.consumer("0 messages"), plant.session]


def test_a_damaged_memory_is_no_empty_list(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    (memory,) = Path().rglob("*.memory")
    memory.write_text("{}")

    (line,) = withdraw(capsys, status=2)
    assert line.startswith(f"gateway: {memory}: is damaged: ")
    assert line.endswith("what the gateway made is not known")


def test_a_gateway_that_never_ran_made_nothing(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("gateway.yaml").write_text(plant.config())
    assert withdraw(capsys)[0].startswith("nothing: the memory of this gateway has no ")

    Path("gateway.yaml").write_text(plant.config(""))
    assert withdraw(capsys)[0].startswith("nothing is remembered: ")
    assert not Path("archive").exists()


def test_yes_ends_what_is_empty_and_keeps_what_would_lose_messages(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    plant.fill(3)

    (refused,) = withdraw(capsys, "--yes", status=2)
    assert refused == (
        "gateway: nothing was ended: plant-1-bus- has 3 messages; plant-1-plant has an unknown"
        " number of messages; to lose them, add --losing plant-1-bus- --losing plant-1-plant"
    )
    (unknown,) = withdraw(capsys, "--yes", "--losing", "other", status=2)
    assert unknown.endswith("made no such name; it has plant-1-bus-, plant-1-plant")
    assert len(withdraw(capsys)) == 3
    assert [row for row in archive_rows() if row["leg"] == "gap"] == []

    lost = ["--losing", "plant-1-bus-", "--losing", "plant-1-plant"]
    assert withdraw(capsys, "--yes", *lost) == [
        plant.consumer("ended, with 3 messages"),
        plant.session.replace("an unknown", "ended, with an unknown"),
    ]
    assert withdraw(capsys) == [NOTHING]
    gaps = {row["route"]: row for row in archive_rows() if row["leg"] == "gap"}
    assert {name: (row["rule"], row["lost"]) for name, row in gaps.items()} == {
        "a": ("withdrawn", None),
        "b": ("withdrawn", 3),
    }
    assert gaps["b"]["reason"] == "gateway withdraw ended the consumer plant-1-bus-"
    settings = NatsSettings(url=plant.nats)
    consumers = ask(settings, lambda jetstream: jetstream.consumers_info("T"))
    assert not consumers
    stream = ask(settings, lambda jetstream: jetstream.stream_info("T"))
    assert stream.state.messages == 3  # the stream is of others, too


def test_a_session_that_a_late_name_left_is_told_from_the_one_in_use(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    first = Path("gateway.yaml").read_text()
    renamed = first.replace("plant: {", "hall: {").replace("endpoint: plant", "endpoint: hall")
    with running(renamed):
        pass
    Path("gateway.yaml").write_text(renamed.replace("hall: {", "hall: {was: plant, "))

    hall, used = (each for each in withdraw(capsys) if each.startswith("hall: session"))
    left = plant.session.replace("plant: session plant-1-plant", "hall: session plant-1-hall")
    assert hall == f"{left}; nothing reads it any more"
    assert used == plant.session.replace("plant: session", "hall: session")


def test_one_name_ends_alone_and_the_spool_may_go_on(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran(f"{ARCHIVE}\n{SPOOL}")
    with closing(connect(Path("spool"))) as database:
        database.execute(LETTER)
        database.commit()
    only = ["--only", "plant-1-plant"]

    assert withdraw(capsys, *only)[:-1] == [plant.session]
    (refused,) = withdraw(capsys, "--yes", *only, status=2)
    assert refused.endswith("to lose them, add --losing plant-1-plant")
    (unknown,) = withdraw(capsys, "--only", "other", status=2)
    assert unknown.endswith("made no such name; it has plant-1-bus-, plant-1-plant")
    assert withdraw(capsys, "--yes", *only, "--losing", "plant-1-plant") == [
        plant.session.replace("an unknown", "ended, with an unknown"),
    ]
    assert withdraw(capsys)[:-1] == [plant.consumer("0 messages")]


def test_only_what_the_gateway_made_ends(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    """An administrator made the consumer, which the gateway reads."""
    from nats.js.api import AckPolicy, ConsumerConfig  # noqa: PLC0415  # the fixture skips without it

    settings = NatsSettings(url=plant.nats)

    async def make(jetstream: Any) -> None:  # noqa: ANN401  # the library's
        await jetstream.add_stream(name="T", subjects=["t.>"])
        config = ConsumerConfig(
            durable_name="plant-1-bus-", ack_policy=AckPolicy.EXPLICIT, filter_subject="t.>"
        )
        await jetstream.add_consumer("T", config)

    ask(settings, make)
    plant.ran()

    assert withdraw(capsys, "--yes", "--losing", "plant-1-plant") == [
        plant.session.replace("an unknown", "ended, with an unknown")
    ]
    (found,) = ask(settings, lambda jetstream: jetstream.consumers_info("T"))
    assert found.name == "plant-1-bus-"


@pytest.mark.parametrize("more", [ARCHIVE, SPOOL])
def test_a_gateway_that_runs_refuses(
    plant: Plant, more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(plant.config(more)):
        assert len(withdraw(capsys)) == 3
        (refused,) = withdraw(capsys, "--yes", status=2)
        assert "the gateway runs: stop every" in refused or "another gateway uses it" in refused
    assert len(withdraw(capsys)) == 3


def test_an_instance_that_holds_the_lease_refuses(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = "standby: {seconds: 1, lease: {kind: file, path: lease}}"
    Path("gateway.yaml").write_text(plant.config(pair).replace("plant-1}", "plant-1, instance: a}"))
    holder = LeaseHolder(FileLeaseStore(Path("lease")), "b", 1)
    holder.start()
    until(holder.holds)
    gateway = Gateway(load(Path("gateway.yaml")), holder)
    gateway.start()
    wait_until_connected(gateway)
    (refused,) = withdraw(capsys, "--yes", status=2)
    gateway.stop(PATIENCE)

    assert "the lease cannot be taken (instance b holds it): stop every instance" in refused
    lost = ["--losing", "plant-1-plant"]
    assert plant.consumer("ended") in withdraw(capsys, "--yes", *lost)
    assert withdraw(capsys) == [NOTHING]


def test_a_spool_that_holds_messages_refuses(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran(SPOOL)
    row = "(1, 'out', 7, 1, 1, '', '')"
    with closing(connect(Path("spool"))) as database:
        database.execute(f"INSERT INTO batches VALUES {row}")  # noqa: S608  # a constant
    (refused,) = withdraw(capsys, "--yes", status=2)
    assert refused.startswith(
        "gateway: the spool holds messages for targets (7): start the gateway"
    )

    with closing(connect(Path("spool"))) as database:
        database.execute("DELETE FROM batches")
        database.execute(LETTER)
    (refused,) = withdraw(capsys, "--yes", status=2)
    assert refused.startswith(
        "gateway: the spool holds dead letters (1): send them again, or delete"
    )


def test_a_broker_that_does_not_answer_keeps_its_own_only(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant.ran()
    Path("gateway.yaml").write_text(plant.config().replace("127.0.0.1, port", "127.0.0.9, port"))

    consumer, session = withdraw(capsys, "--yes", status=1)
    assert consumer == plant.consumer("ended")
    assert ": stays: the endpoint is at " in session
    assert len(withdraw(capsys)) == 2
