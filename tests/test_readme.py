"""What the README shows is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gateway.cli import main

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)


def test_the_readme_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for kind, text in BLOCK.findall(README.read_text(encoding="utf-8")):
        if kind == "yaml":
            name = text.splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(text)
            continue
        for session in text.removeprefix("$ ").split("\n$ "):
            line, _, shown = session.partition("\n")
            program, *arguments = shlex.split(line)
            main(arguments)
            captured = capsys.readouterr()

            assert program == "gateway"
            assert (captured.out + captured.err).strip() == shown.strip(), line
            commands += 1
    assert commands == 6
    assert not (tmp_path / "archive").exists()
