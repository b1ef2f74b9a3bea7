"""The Dockerfile's steps in a bare Debian, and the gateway in it as a container would run it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.archive import batch
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.running import Client
from tests.deploy.dockerfile import Builder, Image, Step, command, stages, steps
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
MIRROR = "http://deb.debian.org/debian"
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
PARSED = [
    pytest.param("RUN a \\\n  && b", [Step(1, "RUN", "a   && b")], id="continued"),
    pytest.param("# c\nRUN a \\\n# c\n b", [Step(2, "RUN", "a  b")], id="comment-inside"),
    pytest.param("\nUSER 1:1\n\nCMD []", [Step(2, "USER", "1:1"), Step(4, "CMD", "[]")], id="two"),
]


@pytest.mark.parametrize(("text", "expected"), PARSED)
def test_instructions_are_read(text: str, expected: list[Step]) -> None:
    assert list(steps(text)) == expected


def test_an_instruction_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    builder = Builder("FROM x AS a\nVOLUME /data", tmp_path, tmp_path / "base", tmp_path)

    with pytest.raises(ValueError, match="line 2: VOLUME is not known"):
        builder.build("a")


@pytest.mark.parametrize("target", ["slim", "jvm", "spark"])
def test_an_image_runs_as_nobody_and_has_its_packages_in_one_layer(target: str) -> None:
    stage = stages(DOCKERFILE)[target]
    layers = [step.text for step in stage.steps if step.word != "USER"]

    assert stage.steps[-1] == Step(stage.steps[-1].line, "USER", "10001:10001")
    assert layers == [
        f"--from={target}-packages /opt/gateway /opt/gateway",
        "--from=wheel /app /opt/gateway",
    ]


def test_nothing_is_installed_without_its_hash() -> None:
    installed = [
        command
        for stage in stages(DOCKERFILE).values()
        for step in stage.steps
        if step.word == "RUN"
        for command in step.text.split("&&")
        if "/pip" in command and (" install" in command or " wheel" in command)
    ]

    assert len(installed) == 7
    for each in installed:
        assert "--require-hashes" in each or "--no-index" in each or "/source" in each


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """Room for systems of a gigabyte, which pytest would keep."""
    with tempfile.TemporaryDirectory(prefix="gateway-image-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def bare_debian(scratch: Path) -> Path:
    """A root made with debootstrap, or the one that BARE_DEBIAN names."""
    if given := os.environ.get("BARE_DEBIAN"):
        return Path(given)
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    root = scratch / "debian"
    done = subprocess.run(  # noqa: S603
        ["debootstrap", "--variant=minbase", "bookworm", root, MIRROR],  # noqa: S607
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no Debian to be had: {done.stdout.splitlines()[-1:]}")
    return root


@pytest.fixture(scope="module")
def builder(bare_debian: Path, scratch: Path) -> Builder:
    return Builder(DOCKERFILE, ROOT, bare_debian, scratch)


@pytest.fixture(scope="module")
def slim(builder: Builder) -> Image:
    return builder.build("slim")


@pytest.fixture(scope="module")
def spark(builder: Builder) -> Image:
    return builder.build("spark")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The volume: the user of the image owns it."""
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


@contextmanager
def container(image: Image, state: Path, settings: Path) -> Iterator[subprocess.Popen[str]]:
    arguments = [*image.entry, *image.command]
    process = subprocess.Popen(  # noqa: S603
        command(image, state, settings, arguments), stderr=subprocess.PIPE, text=True
    )
    with process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        yield process
        watchdog.cancel()
        process.kill()


def said(process: subprocess.Popen[str], wanted: int, **facts: object) -> list[dict[str, object]]:
    """The log until `wanted` of its lines say `facts`."""
    lines: list[dict[str, object]] = []
    assert process.stderr is not None
    for text in process.stderr:
        lines.append(json.loads(text))
        wanted -= facts.items() <= lines[-1].items()
        if not wanted:
            break
    assert not wanted, lines
    return lines


@pytest.mark.nightly
@pytest.mark.broker
def test_the_image_bridges_with_a_root_it_cannot_write(
    slim: Image, state: Path, tmp_path: Path, mosquitto: Mosquitto
) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "gateway.yaml").write_text(CONFIG.format(port=mosquitto.port))
    with container(slim, state, settings) as process:
        said(process, 2, message="connected")
        (child,) = children(process.pid)
        identity = Path(f"/proc/{child}/status").read_text()
        into, out = Client(mosquitto.port), Client(mosquitto.port, "dst/#")
        for number in range(100):
            into.publish("src/a", b"%d" % number)
        out.wait_for(lambda arrived: len(arrived) >= 100)
        into.close()
        out.close()
        os.kill(child, 15)
        said(process, 1, message="stopped", settled=True)
        assert process.wait(PATIENCE) == 0

    assert [payload for _, payload in out.arrived] == [b"%d" % number for number in range(100)]
    facts = dict(line.split(":\t", 1) for line in identity.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == ["10001"] * 4
    assert facts["CapBnd"] == facts["CapEff"] == "0000000000000000"
    assert facts["NoNewPrivs"] == "1"
    assert (state / "spool" / "spool.sqlite").exists()
    assert list(journals(state / "archive")) or list((state / "archive").glob("date=*/*/*"))


@pytest.mark.nightly
@pytest.mark.parametrize("path", ["/opt/gateway/x", "/etc/gateway/x", "/x"])
def test_not_even_root_writes_to_the_image(
    slim: Image, state: Path, tmp_path: Path, path: str
) -> None:
    arguments = ["sh", "-c", f"touch /tmp/x && echo written; touch {path}"]
    done = subprocess.run(  # noqa: S603
        command(slim, state, tmp_path, arguments, user="0:0"),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert "Read-only file system" in done.stderr
    assert done.stdout == "written\n"


@pytest.mark.nightly
def test_the_image_has_nothing_to_install_or_build_with(slim: Image) -> None:
    programs = {path.name for path in (slim.root / "opt/gateway/bin").iterdir()}

    assert "gateway" in programs
    assert not {each for each in programs if each.startswith("pip")}
    for name in ("gcc", "cc", "make", "git", "curl"):
        assert not (slim.root / "usr/bin" / name).exists()


@pytest.mark.nightly
@pytest.mark.spark
def test_the_image_with_spark_reconciles_with_a_root_it_cannot_write(
    spark: Image, state: Path, tmp_path: Path
) -> None:
    write_archive(state / "archive")
    day = datetime.now(tz=UTC).date().isoformat()
    arguments = [*spark.entry, "reconcile", "archive", "--date", day]
    done = subprocess.run(  # noqa: S603
        command(spark, state, tmp_path, arguments),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "delivered 1000\n" in done.stdout
    assert done.stdout.endswith("missing 0\n")


def write_archive(root: Path) -> None:
    """A thousand messages of now, all delivered; the image's user owns them."""
    now = time.time_ns() // 1_000
    durable = threading.Event()
    writer = ArchiveWriter(root, "bare", now)
    writer.append(batch(random.Random(7), now, 0, 1_000), durable.set)  # noqa: S311  # no secret
    assert durable.wait(PATIENCE)
    writer.close(PATIENCE)
    for path in (root, *root.rglob("*")):
        os.chown(path, 10001, 10001)


def children(pid: int) -> list[int]:
    """The gateway's process, below the one that made the namespaces."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]
