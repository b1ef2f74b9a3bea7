"""The command line itself: its version, and its errors about times and dates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway import __version__
from gateway.cli import main
from tests.waiting import PATIENCE

LOADED = (
    "import sys; from gateway.cli import main\n"
    "try: main(['--version'])\n"
    "except SystemExit: print([each for each in sys.modules if each.startswith('gateway.cli.')])"
)


def test_the_version_loads_no_command() -> None:
    done = subprocess.run(  # noqa: S603  # this Python
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=PATIENCE, check=True
    )

    assert done.stdout == f"gateway {__version__}\n['gateway.cli.parsers']\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            [
                "replay",
                "ARCHIVE",
                "--from",
                "yesterday",
                "--to",
                "2026-03-14",
                "--config",
                "C",
                "--route",
                "r",
            ],
            "--from: 'yesterday' is no time; write 2026-03-14T06:00, in UTC or with an offset",
        ),
        (
            ["archive", "verify", "ARCHIVE", "--date", "2026-02-30"],
            "'2026-02-30' is no date; write YYYY-MM-DD",
        ),
        (
            ["reconcile", "ARCHIVE", "--date", "today"],
            "'today' is no date; write YYYY-MM-DD",
        ),
    ],
)
def test_a_text_that_is_no_time_is_named(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("endpoints: {a: {kind: memory, dialect: mqtt}}\nroutes: {}\n")
    given = {"ARCHIVE": str(tmp_path), "C": str(config)}

    assert main([given.get(each, each) for each in words]) == 2

    assert capsys.readouterr().err.endswith(f": {reason}\n")


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["check", "--strct", "a.yaml"], "usage: gateway check [-h]"),
        (["archive", "verify", "a", "b"], "usage: gateway archive verify [-h]"),
        (["import", "ems"], "usage: gateway import ems [-h]"),
        (["import", "ems", "a", "--what"], "usage: gateway import ems [-h]"),
    ],
)
def test_a_wrong_command_line_shows_the_usage_of_its_command(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(usage)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["chek", "a.yaml"], "argument COMMAND: 'chek' is no choice; did you mean 'check'?"),
        (["archive", "verfy"], "argument ACTION: 'verfy' is no choice; did you mean 'verify'?"),
        (["check", "a", "--format", "jsn"], "--format: 'jsn' is no choice; did you mean 'json'?"),
    ],
)
def test_a_misspelled_command_gets_the_nearest_one(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)

    assert capsys.readouterr().err.endswith(f"{text}\n")
