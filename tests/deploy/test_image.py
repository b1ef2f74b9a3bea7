"""The images of deploy/Dockerfile, built in a minimal Debian, and the gateway in them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.archive import batch
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.running import Client
from tests.deploy.container import run, started
from tests.deploy.dockerfile import Image, ImageBuilder
from tests.waiting import PATIENCE

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
DEBIAN_MIRROR = "http://deb.debian.org/debian"
USER_ID = 10001
NO_CAPABILITY = "0000000000000000"
CONFIG = """\
gateway: {{name: bare}}
endpoints:
  here: {{kind: mqtt, host: 127.0.0.1, port: {port}}}
routes:
  relay:
    from: {{endpoint: here, pattern: "src/{{rest...}}"}}
    to: {{endpoint: here, template: "dst/{{rest...}}"}}
archive: {{path: /var/lib/gateway/archive}}
spool: {{path: /var/lib/gateway/spool}}
"""


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A folder for root file systems of a gigabyte, removed after the tests."""
    with tempfile.TemporaryDirectory(prefix="gateway-image-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def bare_debian(scratch: Path) -> Path:
    """A root file system: the folder BARE_DEBIAN, or a new one made with debootstrap."""
    if given := os.environ.get("BARE_DEBIAN"):
        return Path(given)
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    root = scratch / "debian"
    done = subprocess.run(  # noqa: S603
        ["debootstrap", "--variant=minbase", "bookworm", root, DEBIAN_MIRROR],  # noqa: S607
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"debootstrap failed: {done.stdout.splitlines()[-1:]}")
    return root


@pytest.fixture(scope="module")
def builder(bare_debian: Path, scratch: Path) -> ImageBuilder:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    return ImageBuilder(text, ROOT, bare_debian, scratch)


@pytest.fixture(scope="module")
def slim(builder: ImageBuilder) -> Image:
    return builder.build("slim")


@pytest.fixture(scope="module")
def spark(builder: ImageBuilder) -> Image:
    return builder.build("spark")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The volume of the container, owned by its user."""
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, USER_ID, USER_ID)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The folder of the configuration, empty."""
    folder = tmp_path / "settings"
    folder.mkdir()
    return folder


@pytest.mark.broker
def test_the_image_carries_messages_with_a_read_only_root(
    slim: Image, state: Path, settings: Path, mosquitto: Mosquitto
) -> None:
    payloads = [b"%d" % number for number in range(100)]
    (settings / "gateway.yaml").write_text(CONFIG.format(port=mosquitto.port))

    with started(slim, state, settings) as container:
        container.wait_for_log("connected", times=2)
        publisher, subscriber = Client(mosquitto.port), Client(mosquitto.port, "dst/#")
        for payload in payloads:
            publisher.publish("src/a", payload)
        subscriber.wait_for(lambda arrived: len(arrived) >= len(payloads))
        publisher.close()
        subscriber.close()
        os.kill(container.gateway_pid, signal.SIGTERM)
        container.wait_for_log("stopped", settled=True)
        assert container.process.wait(PATIENCE) == 0

    assert [payload for _, payload in subscriber.arrived] == payloads
    assert (state / "spool" / "spool.sqlite").exists()
    segments = (state / "archive").glob("date=*/*/*")
    assert [*journals(state / "archive"), *segments]


@pytest.mark.broker
def test_the_gateway_runs_as_an_unprivileged_user_without_capabilities(
    slim: Image, state: Path, settings: Path, mosquitto: Mosquitto
) -> None:
    (settings / "gateway.yaml").write_text(CONFIG.format(port=mosquitto.port))

    with started(slim, state, settings) as container:
        container.wait_for_log("connected", times=2)
        status = Path(f"/proc/{container.gateway_pid}/status").read_text()

    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == [str(USER_ID)] * 4
    assert facts["CapBnd"] == NO_CAPABILITY
    assert facts["CapEff"] == NO_CAPABILITY
    assert facts["NoNewPrivs"] == "1"


@pytest.mark.parametrize("path", ["/opt/gateway/x", "/etc/gateway/x", "/x"])
def test_root_cannot_write_to_the_image(
    slim: Image, state: Path, settings: Path, path: str
) -> None:
    script = f"touch /tmp/x && echo written; touch {path}"

    done = run(slim, state, settings, ["sh", "-c", script], user="0:0")

    assert done.stdout == "written\n"
    assert "Read-only file system" in done.stderr


def test_the_image_has_no_installer_and_no_compiler(slim: Image) -> None:
    installed = {path.name for path in (slim.root / "opt/gateway/bin").iterdir()}
    assert "gateway" in installed
    assert not {name for name in installed if name.startswith("pip")}

    system = {path.name for path in (slim.root / "usr/bin").iterdir()}
    assert not system & {"gcc", "cc", "make", "git", "curl"}


@pytest.mark.spark
def test_the_image_with_spark_reconciles_with_a_read_only_root(
    spark: Image, state: Path, settings: Path
) -> None:
    write_archive(state / "archive", messages=1_000)
    today = datetime.now(tz=UTC).date().isoformat()
    command = [*spark.entrypoint, "reconcile", "archive", "--date", today]

    done = run(spark, state, settings, command, timeout=300)

    assert done.returncode == 0, done.stderr
    assert "delivered 1000\n" in done.stdout
    assert done.stdout.endswith("missing 0\n")


def write_archive(root: Path, messages: int) -> None:
    """Write an archive of delivered messages, owned by the user of the image."""
    now = time.time_ns() // 1_000
    durable = threading.Event()
    writer = ArchiveWriter(root, "bare", now)
    writer.append(batch(random.Random(7), now, 0, messages), durable.set)  # noqa: S311  # no secret
    assert durable.wait(PATIENCE)
    writer.close(PATIENCE)
    for path in (root, *root.rglob("*")):
        os.chown(path, USER_ID, USER_ID)
