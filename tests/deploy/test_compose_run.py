"""The compose file, brought up whole: traffic through every broker, a reconciliation, and its end.

Images that cannot be pulled are replaced under their own names: mosquitto and ActiveMQ of Debian's
packages, and the gateway's SMF broker for Solace.
"""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests.deploy.conftest import BROKERS, Image
from tests.deploy.container import HARDENED, Container
from tests.deploy.engine import Engine
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.nightly

FILE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
SERVICES = yaml.safe_load(FILE.read_text())["services"]
PROJECT = "gateway-test"
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105  # of this test
GIBIBYTE = 1 << 30


class Composition:
    """The services of the compose file, by name."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        if engine.call("compose", "version").returncode == 0:
            self._program = [engine.program, "compose"]
        elif (older := shutil.which("docker-compose")) is not None:
            self._program = [older]
        else:
            pytest.skip("neither `docker compose` nor docker-compose is installed")

    def run(self, *arguments: str) -> str:
        program, *rest = self._program
        call = self.engine.call(
            *rest, "-f", FILE, "-p", PROJECT, *arguments,
            program=program, timeout=600, variables={"GATEWAY_TOKEN": TOKEN},
        )  # fmt: skip
        assert call.returncode == 0, call.stdout + call.stderr
        return call.stdout.strip()

    def __getitem__(self, service: str) -> Container:
        return Container(self.engine, self.run("ps", "--quiet", service))


@pytest.fixture(scope="module")
def images(engine: Engine, gateway_image: Image, mosquitto_image: str, activemq_image: str) -> None:
    """Make every image of the file available."""
    gateway_image("jvm")
    solace = engine.build(BROKERS / "smf", "smf", "gateway-test-smf", gateway_image("slim"))
    places = {"mosquitto": mosquitto_image, "activemq": activemq_image, "solace": solace}
    for service, replacement in places.items():
        name = SERVICES[service]["image"]
        if engine.call("pull", "--quiet", name, timeout=600).returncode:
            engine.run("tag", replacement, name)


@pytest.fixture
def composition(engine: Engine, images: None) -> Iterator[Composition]:
    del images
    found = Composition(engine)
    found.run("up", "--detach")
    try:
        yield found
    finally:
        found.run("down", "--volumes")


def status() -> dict[str, object]:
    """Return the status page's JSON; an empty one while nothing answers."""
    request = urllib.request.Request(
        "http://127.0.0.1:8047/api/status", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310  # http
            found: dict[str, object] = json.load(answer)
            return found
    except (urllib.error.URLError, ConnectionError):
        return {}


def test_the_composition_carries_messages_through_every_broker(
    composition: Composition, engine: Engine, gateway_image: Image
) -> None:
    gateway = composition["gateway"]
    gateway.wait(lambda: gateway.state["Health"]["Status"] == "healthy")
    gateway.wait_for_log("connected", endpoint="activemq", side="sink")
    gateway.wait_for_log("connected", endpoint="solace", side="source")

    readings = composition["mosquitto"].exec(
        "mosquitto_sub", "-C", "30", "-W", str(int(PATIENCE)), "-v", "-t", "mirror/#"
    )
    assert len(readings.splitlines()) == 30
    assert all(line.startswith("mirror/line") for line in readings.splitlines())
    until(lambda: bool(status()), "the page does not answer")

    state = gateway.inspect()
    (mount,) = (each for each in state["Mounts"] if each["Destination"] == "/var/lib/gateway")
    assert state["HostConfig"]["Memory"] == GIBIBYTE + GIBIBYTE // 4  # as docs/capacity.md says
    for service in ("traffic", "gateway"):
        composition.run("stop", service)
    assert (gateway.state["ExitCode"], gateway.state["OOMKilled"]) == (0, False)

    # The volume of the trial, with the image that reconciles.
    day = datetime.now(tz=UTC).date().isoformat()
    done = engine.call(
        "run", "--rm", *HARDENED, "--memory", "4g", "--network", "none",
        "--volume", f"{mount['Name']}:/var/lib/gateway", gateway_image("spark"),
        "reconcile", "/var/lib/gateway/archive", "--date", day, "--accept-gaps", timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("missing 0")


def test_nothing_is_left_after_the_end(engine: Engine) -> None:
    filters = ("--filter", f"label=com.docker.compose.project={PROJECT}", "--quiet")

    assert engine.run("ps", "--all", *filters) == ""
    assert engine.run("volume", "ls", *filters) == ""
    assert engine.run("network", "ls", *filters) == ""
