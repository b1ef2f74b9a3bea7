"""The slim image, run as the manifests run it: traffic, ends, restarts, health and readiness."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.brokers.running import Client
from tests.deploy.conftest import GATEWAY_UID, Image
from tests.deploy.container import HARDENED, LOOPBACK, Container, gateway_options, started
from tests.deploy.engine import Engine
from tests.waiting import PATIENCE

TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105  # of this test
CONFIG = """\
gateway: {name: image}
endpoints:
  near: {kind: mqtt, host: near, backoff_min: 0.05, backoff_max: 0.2}
  far: {kind: mqtt, host: far, keepalive: 2, backoff_min: 0.05, backoff_max: 0.2}
routes:
  relay:
    from: {endpoint: near, pattern: "src/{rest...}"}
    to: {endpoint: far, template: "dst/{rest...}"}
archive: {path: /var/lib/gateway/archive}
spool: {path: /var/lib/gateway/spool}
web: {address: 0.0.0.0, token: "${env:GATEWAY_TOKEN}"}
"""
HEALTH = (  # as in deploy/compose.yaml, more often
    "--health-interval", "1s", "--health-timeout", "3s", "--health-retries", "2", "--health-cmd",
    "python -c 'import urllib.request as web; web.urlopen(\"http://127.0.0.1:8047/healthz\")'",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bridge:
    """Two brokers and the gateway between them, each a container."""

    near: Container
    far: Container
    gateway: Container

    def connected(self, times: int = 1) -> None:
        self.gateway.wait_for_log("connected", times, endpoint="near", side="source")
        self.gateway.wait_for_log("connected", times, endpoint="far", side="sink")

    def get(self, path: str) -> int:
        """Return the HTTP status of a request without a token; 0 when nothing answers."""
        url = f"http://{LOOPBACK}:{self.gateway.port(8047)}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


@pytest.fixture
def bridge(
    engine: Engine, slim: str, mosquitto_image: str, net: str, state: str, settings: Path
) -> Iterator[Bridge]:
    (settings / "gateway.yaml").write_text(CONFIG)
    with ExitStack() as stack:

        def broker(alias: str) -> Container:
            options = ("--network", net, "--network-alias", alias, "--publish", "127.0.0.1::1883")
            return stack.enter_context(started(engine, mosquitto_image, options=options))

        near, far = broker("near"), broker("far")
        options = gateway_options(net, state, settings, {"GATEWAY_TOKEN": TOKEN})
        options = ("--restart", "unless-stopped", *HEALTH, *options)
        gateway = stack.enter_context(started(engine, slim, options=options))
        found = Bridge(near, far, gateway)
        found.connected()
        yield found


@contextmanager
def client(broker: Container, pattern: str = "") -> Iterator[Client]:
    found = Client(broker.port(1883), pattern)
    try:
        yield found
    finally:
        found.close()


def publish(broker: Container, payloads: list[bytes]) -> None:
    with client(broker) as publisher:
        sent = [publisher.publish("src/a", payload) for payload in payloads]
        for each in sent:
            each.wait_for_publish(PATIENCE)


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_messages_cross_and_a_stop_is_orderly(bridge: Bridge) -> None:
    payloads = numbers(0, 500)
    with client(bridge.far, "dst/#") as subscriber:
        publish(bridge.near, payloads)
        subscriber.wait_for(lambda arrived: len(arrived) >= len(payloads))

    assert [payload for _, payload in subscriber.arrived] == payloads
    assert bridge.gateway.stop() == 0
    bridge.gateway.wait_for_log("stopped", settled=True)
    assert bridge.gateway.state["OOMKilled"] is False


def test_a_killed_gateway_loses_nothing_and_converts_its_journals(bridge: Bridge) -> None:
    """Messages wait in the spool for the far broker while the gateway is killed and started."""
    bridge.far.kill()
    bridge.gateway.wait_for_log("far: ", endpoint="far", side="sink", level="warning")
    publish(bridge.near, numbers(0, 200))

    bridge.gateway.kill()
    publish(bridge.near, numbers(200, 400))
    bridge.far.start()
    with client(bridge.far, "dst/#") as subscriber:
        bridge.gateway.start()
        subscriber.wait_for(lambda arrived: {each for _, each in arrived} >= set(numbers(0, 400)))

    segments = "find /var/lib/gateway/archive -name '*.parquet'"
    bridge.gateway.wait(lambda: bool(bridge.gateway.exec("sh", "-c", segments)))
    assert "damaged" not in bridge.gateway.exec("find", "/var/lib/gateway/archive")


def test_the_engine_restarts_a_gateway_whose_process_died(bridge: Bridge) -> None:
    if os.geteuid() != 0:
        pytest.skip("killing a process of a container from outside needs root")
    os.kill(bridge.gateway.pid, 9)

    bridge.connected(times=2)
    assert bridge.gateway.inspect()["RestartCount"] == 1


def test_health_is_the_process_and_readiness_its_brokers(bridge: Bridge) -> None:
    gateway = bridge.gateway
    gateway.wait(lambda: gateway.state["Health"]["Status"] == "healthy")
    gateway.wait(lambda: bridge.get("/readyz") == 200)

    bridge.far.kill()
    gateway.wait(lambda: bridge.get("/readyz") == 503)
    assert bridge.get("/healthz") == 200

    bridge.far.start()
    gateway.wait(lambda: bridge.get("/readyz") == 200)
    gateway.kill("STOP")
    gateway.wait(lambda: gateway.state["Health"]["Status"] == "unhealthy")
    gateway.kill("CONT")
    gateway.wait(lambda: gateway.state["Health"]["Status"] == "healthy")


def test_the_process_has_no_privilege_and_its_limits(bridge: Bridge) -> None:
    text = bridge.gateway.exec("cat", "/proc/1/status")
    facts = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)

    assert facts["Uid"].split() == [str(GATEWAY_UID)] * 4
    assert int(facts["CapBnd"], 16) == int(facts["CapEff"], 16) == 0
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"  # a filter
    host = bridge.gateway.inspect()["HostConfig"]
    assert (host["Memory"], host["PidsLimit"], host["ReadonlyRootfs"]) == (768 << 20, 256, True)


@pytest.mark.parametrize("path", ["/opt/gateway/x", "/etc/gateway/x", "/x"])
def test_root_cannot_write_to_the_image(bridge: Bridge, path: str) -> None:
    script = f"touch /tmp/x && echo written; touch {path} 2>&1 || true"
    output = bridge.gateway.exec("sh", "-c", script, user="0:0")

    assert output.splitlines()[0] == "written"
    assert "Read-only file system" in output


@pytest.mark.nightly
@pytest.mark.spark
def test_the_spark_image_reconciles_the_archive(
    bridge: Bridge, engine: Engine, state: str, gateway_image: Image
) -> None:
    with client(bridge.far, "dst/#") as subscriber:
        publish(bridge.near, numbers(0, 100))
        subscriber.wait_for(lambda arrived: len(arrived) >= 100)
    day = datetime.now(tz=UTC).date().isoformat()
    assert bridge.gateway.stop() == 0

    done = engine.call(
        "run", "--rm", *HARDENED, "--memory", "4g", "--network", "none",
        "--volume", f"{state}:/var/lib/gateway", gateway_image("spark"),
        "reconcile", "/var/lib/gateway/archive", "--date", day, "--accept-gaps", timeout=400,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "delivered 100\n" in done.stdout
    assert done.stdout.endswith("missing 0\n")
