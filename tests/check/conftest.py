"""The check of several files, whose paths are short."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main
from tests.check.fleets import Check, Checked


@pytest.fixture
def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Check:
    """Return a function that checks files, and returns the exit status and the lines.

    `files` are texts by the name of the file without its suffix.
    """
    monkeypatch.chdir(tmp_path)

    def checked(*options: str, **files: str) -> Checked:
        for name, text in files.items():
            Path(f"{name}.yaml").write_text(text, encoding="utf-8")
        status = main(["check", *options, *(f"{name}.yaml" for name in files)])
        out, err = capsys.readouterr()
        return status, [*err.splitlines(), *out.splitlines()]

    return checked
