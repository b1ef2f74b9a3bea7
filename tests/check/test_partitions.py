"""The order of the copies of a target whose route chooses the partition, in `gateway check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.cli import main
from tests.config.test_names_of import configuration
from tests.config.test_partitions import FROM


def routes(partition: str, key: str = "") -> str:
    to = f'to: {{endpoint: lake, topic: "plant"{key}, lossy: true{partition}}}'
    return f"  r:\n    {FROM}\n    {to}\n"


@pytest.mark.parametrize(
    ("partition", "line"),
    [
        (', partition: "{line}"', "     in order for each text of `partition` (by {line})"),
        (
            ', partition: "{line|upper}/{rest...|join:/}"',
            "     in order for each text of `partition` (by {line}, {rest})",
        ),
        (", partition: 2", "     in order: all of them go to partition 2"),
    ],
)
def test_the_order_by_partition_is_told(
    tmp_path: Path, partition: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = configuration(tmp_path, routes(partition))
    main(["check", str(tmp_path / "gateway.yaml")])

    assert line in capsys.readouterr().out.splitlines()
    assert "no-key" not in [each.rule for each in examine(found)]


def test_without_partition_and_key_no_order_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = configuration(tmp_path, routes(""))
    main(["check", str(tmp_path / "gateway.yaml")])

    assert "in order" not in capsys.readouterr().out
    assert "no-key" in [each.rule for each in examine(found)]
