"""`gateway check` accepts the blocks for cloud brokers in `docs/mqtt.md`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.tables import ROOT
from gateway.cli import main

SECTION = (ROOT / "docs" / "mqtt.md").read_text("utf-8").partition("## Brokers in a cloud\n")[2]
BLOCKS = re.findall(
    r"\*\*([^*]+): not tested\.\*\*\n\n```yaml\n(.*?)```", SECTION.partition("\n## ")[0], re.DOTALL
)


def test_every_service_has_a_block() -> None:
    assert [name.split()[0] for name, _ in BLOCKS] == ["AWS", "Azure", "Azure", "Solace"]


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_the_block_of_a_service_has_no_finding_but_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, block: str
) -> None:
    for each in ("client.pem", "client.key", "secret"):
        (tmp_path / each).write_text("secret\n")
    file = tmp_path / "gateway.yaml"
    file.write_text(re.sub(r"/run/secrets/[\w-]+", str(tmp_path / "secret"), block))

    assert main(["check", "--strict", str(file)]) == 0, (name, capsys.readouterr())
