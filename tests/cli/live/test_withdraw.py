"""`gateway withdraw` lists what the gateway made at its brokers, and ends it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.endpoints.nats.sink import NatsSink
from gateway.endpoints.settings.nats import NatsSettings
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.nats_server import StartNats
from tests.endpoints.exchange import opened, send_all
from tests.endpoints.nats.stream import say
from tests.runtime.gateway.running import running

pytestmark = pytest.mark.broker

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
        settings = NatsSettings(name="fill", url=self.nats)
        with opened(sink := NatsSink(settings)):
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
    assert bus.endswith("the endpoint left the configuration; write it again, to reach its broker")
    assert "; give it the earlier address again" in session


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
