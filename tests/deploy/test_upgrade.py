"""An upgrade and a rollback: two versions on the same spool and journals, killed in between."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Client, Process
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.nightly, pytest.mark.broker]

ROOT = Path(__file__).parents[2]
CONFIG = """\
gateway: {{name: upgraded}}
endpoints:
  near:
    kind: mqtt
    host: 127.0.0.1
    port: {near}
    client_id: upgraded  # its session holds what the first version did not settle
    backoff_min: 0.05
    backoff_max: 0.2
  far: {{kind: mqtt, host: 127.0.0.1, port: {far}, backoff_min: 0.05, backoff_max: 0.2}}
routes:
  relay:
    from: {{endpoint: near, pattern: "src/{{rest...}}"}}
    to: {{endpoint: far, template: "dst/{{rest...}}"}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
"""
FORMATS = """
from gateway.archive.journal.records import MAGIC
from gateway.archive.layout import SCHEMA_VERSION
from gateway.runtime.outbound.spool_db import VERSION
print(MAGIC, SCHEMA_VERSION, VERSION)
"""
THIS: dict[str, str] = {}  # the environment of the version in this checkout


def git(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        ["git", "-C", ROOT, *arguments],  # noqa: S607
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def previous_commit() -> str:
    """Return the commit before HEAD; the variable GATEWAY_TEST_PREVIOUS names another one."""
    return os.environ.get("GATEWAY_TEST_PREVIOUS") or git("rev-parse", "HEAD~1")


def formats(version: dict[str, str]) -> str:
    """Return the numbers of the formats that a version writes."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FORMATS],
        env={**os.environ, **version}, capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the wheel of the previous version; return the environment that selects it."""
    folder = tmp_path_factory.mktemp("previous")
    git("archive", "--format=zip", f"--output={folder / 'source.zip'}", previous_commit())
    with zipfile.ZipFile(folder / "source.zip") as archive:
        archive.extractall(folder / "source")
    for arguments in (
        ["wheel", "--wheel-dir", folder / "wheel", folder / "source"],
        ["install", "--target", folder / "installed", "--no-index", "--find-links",
         folder / "wheel", "gateway"],
    ):  # fmt: skip
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "pip", "--quiet", *map(str, arguments), "--no-deps"],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    # Without the working folder in the path, the wheel precedes the editable installation.
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(folder / "installed")}


class Site:
    """Two brokers and the folders of one gateway, which versions use one after the other."""

    def __init__(self, folder: Path, near: Mosquitto, far: Mosquitto) -> None:
        self.folder, self.near, self.far = folder, near, far
        self._config = folder / "gateway.yaml"
        self._config.write_text(CONFIG.format(near=near.port, far=far.port, folder=folder))

    @contextmanager
    def running(self, version: dict[str, str]) -> Iterator[Process]:
        """Run a version; kill it at the end, as a crash does."""
        process = Process(self._config, version)
        try:
            process.wait_for("connected", endpoint="near", side="source")
            yield process
        finally:
            process.end(signal.SIGKILL)

    def publish(self, first: int, last: int) -> None:
        client = Client(self.near.port)
        for each in [client.publish("src/a", b"%d" % i) for i in range(first, last)]:
            each.wait_for_publish(PATIENCE)
        client.close()

    def spooled(self) -> int:
        """Return the bytes of the spool, its log included."""
        return sum(path.stat().st_size for path in (self.folder / "spool").glob("spool.sqlite*"))

    def journals(self, suffix: str) -> set[Path]:
        return set((self.folder / "archive" / ".journal").glob(f"*{suffix}"))

    def findings(self) -> set[str]:
        """Return the rules of the errors of `gateway archive verify`."""
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "gateway", "archive", "verify", str(self.folder / "archive")],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return set(re.findall(r"^error: .* \[([a-z-]+)\]$", done.stdout, re.MULTILINE))


@pytest.fixture
def site(tmp_path: Path, start_mosquitto: StartMosquitto) -> Site:
    return Site(tmp_path, start_mosquitto(), start_mosquitto())


@pytest.mark.parametrize("direction", ["upgrade", "rollback"])
def test_the_other_version_takes_over_spool_and_journals(
    site: Site, previous: dict[str, str], direction: str
) -> None:
    if formats(previous) != formats(THIS):
        pytest.skip("this commit changes a format")
    first, second = (previous, THIS) if direction == "upgrade" else (THIS, previous)
    with site.running(first) as process:
        process.wait_for("connected", endpoint="far", side="sink")
        site.publish(0, 100)
        site.far.kill()
        process.wait_for("far: ", endpoint="far", side="sink", level="warning")
        empty = site.spooled()
        site.publish(100, 300)
        until(lambda: site.spooled() > empty, "nothing is spooled")
    left = site.journals(".open")

    site.far.start()
    subscriber = Client(site.far.port, "dst/#")
    with site.running(second) as process:
        site.publish(300, 400)
        process.wait_for("connected", endpoint="far", side="sink")
        wanted = {b"%d" % number for number in range(100, 400)}
        subscriber.wait_for(lambda arrived: {each for _, each in arrived} >= wanted)
        until(lambda: not left & site.journals(".open"), "a journal is not converted")
        assert process.end() == 0
    subscriber.close()

    assert not site.journals(".damaged")
    until(lambda: not site.findings(), "the archive is not proven")


def test_the_previous_version_is_another_one(previous: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import gateway; print(gateway.__file__)"],
        env={**os.environ, **previous}, capture_output=True, text=True, timeout=PATIENCE,
        check=True,
    )  # fmt: skip

    assert done.stdout.startswith(previous["PYTHONPATH"])
