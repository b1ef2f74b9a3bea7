"""The folder in which the commands of the documents run, and the stand-ins for its names."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.archive.heads import WriterHead, write_head
from gateway.cli import main
from gateway.config.load import load
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Message
from gateway.runtime.gateway import Gateway
from tests.archive.samples import DAY, NOON, archive, delivered, identity, received
from tests.endpoints.exchange import send
from tests.night.reconcile.shortening import Sender, long_name
from tests.printed_commands import ROOT, fences
from tests.waiting import PATIENCE, until

PATH: Final = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
SIX: Final = NOON - 6 * 3_600_000_000 + 1  # within the hour that the documents replay
DATE: Final = DAY.isoformat()
SHELL_TIMEOUT: Final = 600  # seconds; a submitted Spark job takes longest

REPLAY: Final = (
    f"gateway replay ARCHIVE --config CONFIG --route orders --from {DATE}T06 --to {DATE}T07"
)
STAND_INS: Final = (  # printed text and its replacement, in this order
    ("gateway replay ...", REPLAY),
    # a run would install packages, or run this suite
    ("make ", f"make -C {shlex.quote(str(ROOT))} --dry-run "),
    ("gateway status", "gateway status --url URL"),
    ("gateway broker smf", "gateway broker smf --port 0"),
    ("gateway top", "gateway top --count 1 --url URL"),  # ends without Ctrl-C
    ("=spark://host:7077", "=local[1]"),
    ("=yarn", "=local[1]"),
    ("--route ticks", "--route plant"),
    ("ARCHIVE ID", f"ARCHIVE {identity(2).hex()}"),
    ("--name NAME", "--name orders/7"),
    ("ARCHIVE WRITER", "ARCHIVE north"),
    ("--date D", f"--date {DATE}"),
    ("generate ARCHIVE", "generate new"),
    ("A.yaml B.yaml ...", "north.yaml south.yaml"),
    ("--strict CONFIG", "--strict plant.yaml"),  # without the warnings for memory endpoints
    ("./archive", "ARCHIVE"),
    ("ARCHIVE", "records"),
    ("CONFIG", "gateway.yaml"),
    ("NUMBER...", "1"),
    ("YYYY-MM-DD", DATE),
    ("date=D", f"date={DATE}"),
    ("2026-11-20", DATE),
    (" NAME", f" {long_name(1)}"),
)  # fmt: skip

CONFIG = """\
gateway: {name: west}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: docs-plant}
  erp: {kind: memory, dialect: ems, broker: docs-erp}
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: erp, template: "ORDERS.{rest...}", on_too_long: shorten}
  plant:
    from: {endpoint: plant, pattern: "plant/{rest...}"}
    to: {endpoint: erp, template: "plant.{rest...}", on_too_long: shorten}
archive: {path: records}
spool: {path: spool}
tests:
  a name crosses:
    given: {endpoint: plant, name: orders/1}
    expect: [{endpoint: erp, name: ORDERS.1}]
"""


def make_world(folder: Path) -> None:
    """Write what the commands use: a configuration, its dead letter, and an archive of `DAY`.

    Message 2 of the archive is missing.
    """
    config = folder / "gateway.yaml"
    config.write_text(
        CONFIG.replace('"ORDERS.{rest...}"', '"ORDERS.{rest...}", on_unmappable: reject')
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        relay_dead_letter(config)
    config.write_text(CONFIG)
    sender = Sender(folder / "records")
    sender.note(long_name(1), "ems")
    sender.close()
    archive(
        folder / "records",
        received([1, 2], time=SIX, name="orders/7", payload=b"7"),
        delivered([1], time=SIX, received=SIX, name="ORDERS.7", source_name="orders/7"),
        received([3], time=SIX, name="plant/7", payload=b"7", route="plant"),
        delivered(
            [3], time=SIX, received=SIX, name="plant.7", source_name="plant/7", route="plant"
        ),
        gateway="north",
    )
    write_head(folder / "records", WriterHead("north", "north", SIX))
    for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")):
        write_named_files(folder, page.read_text("utf-8"))
    for file in (ROOT / "tests/imports/samples").iterdir():
        shutil.copy(file, folder)
    for name in ("deploy", "mappings"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "secrets").mkdir()
    for name in ("ca.pem", "far-password", "web-token"):
        (folder / "secrets" / name).write_text("a-secret-of-this-test\n")


def relay_dead_letter(config: Path) -> None:
    gateway = Gateway(load(config))
    gateway.start()
    until(lambda: all(state.connection.value == "connected" for state in gateway.states))
    into = make_sink(MemorySettings(name="in", dialect="mqtt", broker="docs-plant"))
    into.open()
    send(into, Message("orders/a.b", b"7"))
    into.close()
    assert gateway.stop(PATIENCE)


def write_named_files(folder: Path, text: str, other: str = "") -> None:
    """Write the YAML files of a page; one without `# NAME.yaml` at its top is the file `other`."""
    for content in fences("yaml", text):
        found = re.match(r"# ([\w-]+\.yaml)\n", content)
        if name := found[1] if found else other:
            (folder / name).write_text(content)


def stand_in(text: str, more: Mapping[str, str]) -> str:
    """Replace the stand-ins in their order, numbers of messages, then all of `more` at once."""
    for printed, used in STAND_INS:
        text = text.replace(printed, used)
    text = re.sub(r"--messages \d+", "--messages 1000", text)
    either = "|".join(map(re.escape, more)) or "(?!)"
    return re.sub(either, lambda found: more[found[0]], text)


@contextmanager
def environment(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Work in `folder`, with the project's programs on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PATH", PATH)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def run_command(folder: Path, text: str, variables: Mapping[str, str] | None = None) -> int:
    """Run a command as printed and return its exit status; `gateway` runs in this process."""
    words = shlex.split(text)
    own = dict(variables or {})
    while "=" in words[0]:
        name, _, own[name] = words.pop(0).partition("=")
    with environment(folder, own):
        if words[0] != "gateway":
            return shell_status(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO())  # its input has ended
            try:
                return main(words[1:])
            except SystemExit as end:
                return int(end.code or 0)


def shell_status(text: str) -> int:
    """Run a line of the documents in a shell; end its processes if the test ends before them."""
    with subprocess.Popen(text, shell=True, start_new_session=True) as process:  # noqa: S602  # a line of the documents
        try:
            return process.wait(SHELL_TIMEOUT)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


@contextmanager
def in_background(
    folder: Path, text: str, output: Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the end of the block; a command of the project exits with 0 then."""
    with environment(folder, variables or {}), output.open("wb") as stream:
        words = shlex.split(text.removesuffix("&"))
        process = subprocess.Popen(words, stdout=stream, stderr=stream)  # noqa: S603  # likewise
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(PATIENCE)
    assert status == 0 or words[0].startswith("mosquitto"), (text, output.read_text())
