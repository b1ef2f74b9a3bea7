"""The configuration for EMS in `docs/ems.md` is valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.cli import main

PAGE = (Path(__file__).parents[2] / "docs/ems.md").read_text(encoding="utf-8")
EMS, _ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_configuration_for_ems_has_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(EMS)

    assert main(["check", "--without-secrets", str(file)]) == 0
    assert "core (ems) queue:orders.{desk}" in capsys.readouterr().out
