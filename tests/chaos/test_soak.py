"""A soak: all attacks on memory at once while honest traffic flows, and no message is lost.

The gateway is a small sidecar: `max_packet_in` and `receive_window_bytes` 4 MiB, `receive_window`
16 messages of Solace, `segment_bytes` 4 MiB for the archive's converter (docs/security.md). It has
no Java. Latencies and memory are printed at the end; nothing is asserted about latencies.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPSConnection
from pathlib import Path

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from benchmarks.tree import tree
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.brokers.solace_bridge import StoredBroker
from tests.brokers.test_mqtt_tls import make_certificate
from tests.chaos.rig import PAGE
from tests.chaos.soak_attackers import ATTACKS
from tests.waiting import until

pytestmark = pytest.mark.broker

MAX_GATEWAY = 256 << 20  # bytes
MAX_TREE = 512 << 20  # bytes, with the archive's converter (docs/security.md)
RATE = 1_000  # honest messages a second
PATIENCE = 900.0  # seconds for a program of the soak
CONFIG = """\
gateway: {{name: soak}}
endpoints:
  plant:
    {{kind: mqtt, host: 127.0.0.1, port: {plant}, max_packet_in: 4194304,
     receive_window_bytes: 4194304, backoff_min: 0.05, backoff_max: 0.2}}
  cloud: {{kind: mqtt, host: 127.0.0.1, port: {cloud}, backoff_min: 0.05, backoff_max: 0.2}}
  office:
    {{kind: solace, url: "tcp://127.0.0.1:{smf}", receive_window_bytes: 4194304,
     receive_window: 16, backoff_min: 0.05, backoff_max: 0.2}}
routes:
  honest:
    from: {{endpoint: plant, pattern: "src/{{rest...}}"}}
    to: {{endpoint: cloud, template: "dst/{{rest...}}"}}
  bad:
    from: {{endpoint: plant, pattern: "bad/{{rest...}}"}}
    to: {{endpoint: cloud, template: "other/{{rest...}}"}}
  long:
    from: {{endpoint: plant, pattern: "long/{{rest...}}"}}
    to: {{endpoint: office, template: "long/{{rest...}}", on_too_long: shorten}}
  lists:
    from: {{endpoint: office, pattern: "lists/{{rest...}}"}}
    to: {{endpoint: cloud, template: "lists/{{rest...}}", payload: json}}
archive: {{path: {folder}/archive, segment_bytes: 4194304}}
spool: {{path: {folder}/spool}}
web: {{port: {page}, cert_file: {folder}/page.pem, key_file: {folder}/page.key}}
"""
SIDES = (("plant", "source"), ("cloud", "sink"), ("office", "source"), ("office", "sink"))


@dataclass(frozen=True, slots=True)
class Soak:
    """A running gateway with its brokers."""

    gateway: Process
    plant: int
    cloud: int
    smf: int
    page: int
    programs: ExitStack  # ends what `_start` has started

    def honest(self, messages: int) -> subprocess.Popen[str]:
        """Start honest traffic; it prints its figures when the last message has arrived."""
        load: list[object] = ["benchmarks/relay_load.py"]
        load += ["--from-port", self.plant, "--to-port", self.cloud]
        load += ["--qos", 1, "--rate", RATE, "--messages", messages, "--warmup", 0]
        load += ["--window", 10**9, "--idle-timeout", PATIENCE / 2, "--version", 5]
        return self._start(load)

    def attackers(self, rounds: int, pause: float) -> subprocess.Popen[str]:
        """Start the attackers; they print what they have sent."""
        attackers: list[object] = ["-m", "tests.chaos.soak_attackers"]
        attackers += ["--mqtt", self.plant, "--smf", self.smf]
        attackers += ["--page", self.page, "--rounds", rounds, "--pause", pause]
        return self._start(attackers)

    def _start(self, arguments: Sequence[object]) -> subprocess.Popen[str]:
        program = subprocess.Popen(  # noqa: S603  # our own programs
            [sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.programs.enter_context(program)
        self.programs.callback(program.kill)
        return program


def printed(program: subprocess.Popen[str]) -> dict[str, object]:
    """Wait for a program, and return its last line."""
    output = program.communicate(timeout=PATIENCE)[0]
    assert program.returncode == 0, output
    found: dict[str, object] = json.loads(output.splitlines()[-1])
    return found


@contextmanager
def soaked(folder: Path, start_mosquitto: StartMosquitto) -> Iterator[Soak]:
    make_certificate(folder, "page", None)
    plant, cloud, smf = start_mosquitto(), start_mosquitto(), StoredBroker(folder / "smf")
    page = free_port()
    config = folder / "gateway.yaml"
    config.write_text(
        CONFIG.format(folder=folder, plant=plant.port, cloud=cloud.port, smf=smf.port, page=page)
    )
    gateway = Process(config)
    try:
        for endpoint, side in SIDES:
            gateway.wait_for("connected", endpoint=endpoint, side=side)
        with ExitStack() as programs:
            yield Soak(gateway, plant.port, cloud.port, smf.port, page, programs)
    finally:
        gateway.process.kill()
        gateway.process.wait(PATIENCE)
        smf.kill()


class PeakTree:
    """The highest resident memory of a gateway, and of it with its child processes, in bytes.

    Mutable: written by its own thread until `stop`.
    """

    def __init__(self, pid: int) -> None:
        self.gateway = self.tree = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            sizes = [*map(resident, tree(self._pid))]
            self.gateway = max(self.gateway, sizes[0])
            self.tree = max(self.tree, sum(sizes))


def resident(pid: int) -> int:
    """Return the resident bytes of a process, shared pages included; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE
    except OSError:
        return 0


def is_ready(page: int) -> bool:
    """Return whether the gateway says so at /readyz; an attacker's flood may delay the answer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with closing(HTTPSConnection("127.0.0.1", page, timeout=10, context=context)) as connection:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == HTTPStatus.OK
    except OSError:
        return False


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [
        pytest.param(3, 4, id="short", marks=pytest.mark.chaos),
        pytest.param(120, 120, id="long", marks=pytest.mark.chaos),
    ],
)
def test_all_attacks_at_once_take_little_memory_and_lose_no_message(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    record_property: Callable[[str, object], None],
    seconds: int,
    rounds: int,
) -> None:
    with soaked(tmp_path, start_mosquitto) as soak:
        before = printed(soak.honest(RATE))
        memory = PeakTree(soak.gateway.process.pid)
        honest = soak.honest(RATE * seconds)
        attackers = soak.attackers(rounds, seconds / rounds)
        sent, during = printed(attackers), printed(honest)
        until(lambda: is_ready(soak.page), "the gateway is ready", PATIENCE)
        memory.stop()
        status = soak.gateway.end()

    megabytes = f"{memory.gateway >> 20} MiB, {memory.tree >> 20} with children"
    facts = {"before": before["latency_ms"], "during": during["latency_ms"], "attacks": sent}
    record_property("figures", f"soak: memory {megabytes}; {json.dumps(facts)}")
    assert memory.gateway < MAX_GATEWAY
    assert memory.tree < MAX_TREE
    assert (before["lost"], during["lost"]) == (0, 0)
    assert sent.keys() == {attack.__name__ for attack in ATTACKS}
    assert status == 0
