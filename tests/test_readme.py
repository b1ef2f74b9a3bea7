"""The commands of the README print what it shows, and its mapping moves a message."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from gateway.brokers.activemq import free_ports
from gateway.cli import main
from tests.waiting import PATIENCE, until

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"```(yaml|console|sh)\n(.*?)```", re.DOTALL)
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
ENVIRONMENT = {**os.environ, "PATH": PATH}


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README.read_text("utf-8")) if found == kind]


def write_files(folder: Path, ports: Mapping[str, str]) -> None:
    for text in blocks("yaml"):
        name = text.splitlines()[0].removeprefix("# ")
        (folder / name).write_text(on_ports(text, ports))


def on_ports(text: str, ports: Mapping[str, str]) -> str:
    for usual, free in ports.items():
        text = text.replace(usual, free)
    return text


def test_commands_print_what_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {})
    texts = "\n".join(blocks("console"))
    shown = [session for session in re.split(r"(?m)^\$ ", texts) if session]

    for session in shown:
        line, _, expected = session.partition("\n")
        program, *arguments = shlex.split(line)
        main(arguments)
        captured = capsys.readouterr()

        assert program == "gateway"
        assert (captured.out + captured.err).strip() == expected.strip(), line
    assert len(shown) == 6
    assert not (tmp_path / "archive").exists()


@contextmanager
def in_background(line: str, folder: Path, out: Path) -> Iterator[None]:
    with out.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603  # a line of the README
            shlex.split(line), cwd=folder, stdout=stream, stderr=stream, env=ENVIRONMENT
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.broker
def test_the_mapping_of_the_readme_moves_a_message(tmp_path: Path) -> None:
    if shutil.which("mosquitto_pub") is None or shutil.which("mosquitto", path=PATH) is None:
        pytest.skip("no mosquitto: apt-get install mosquitto mosquitto-clients")
    ports = dict(zip(("1883", "1884"), map(str, free_ports(2)), strict=True))
    write_files(tmp_path, ports)
    (block,) = blocks("sh")
    *running, publish = on_ports(block, ports).splitlines()
    outputs = [tmp_path / f"{number}.out" for number in range(len(running))]

    with ExitStack() as stack:
        for line, out in zip(running, outputs, strict=True):
            stack.enter_context(in_background(line.removesuffix(" &"), tmp_path, out))
            if line.startswith("mosquitto -p"):
                until(partial(listens, int(line.split()[2])))

        def arrived() -> bool:  # once all are connected; what comes earlier is not kept
            subprocess.run(  # noqa: S603  # a line of the README
                shlex.split(publish), check=False, capture_output=True, env=ENVIRONMENT
            )
            return "hall/7/temperature 21.5\n" in outputs[-1].read_text()

        until(arrived)
