"""The reconciliation survives a lost executor: no code drops the lineage of its data."""

from __future__ import annotations

from pathlib import Path

import gateway.night.reconcile


def test_no_code_checkpoints_locally() -> None:
    folder = Path(gateway.night.reconcile.__file__).parent

    found = [
        path.name
        for path in sorted(folder.rglob("*.py"))
        if "localCheckpoint" in path.read_text("utf-8")
    ]

    assert found == []
