"""Names that were sent against what a mapping makes of them now."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.reconcile.job import Job, reconcile
from tests.archive.samples import DAY, archive, delivered, received

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def silent(_: str) -> None:
    return None


def otherwise(route: str, target: str, name: str) -> str:
    """A mapping that was changed since: for one name at one target, and one that no route takes."""
    if (route, target, name) == ("orders", "erp", "a/b1"):
        return "b.1"
    return "(not taken)" if name == "a/b2" else name.replace("/", ".")


def test_names_that_would_be_others_now_are_findings(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    ends = [
        delivered([number], target, source_name=f"a/b{number}")
        for number in range(4)
        for target in ("erp", "audit")
    ]
    archive(root, received(range(4), ("erp", "audit")), *ends)

    report = reconcile(Job(root, DAY, tmp_path / "output", translator=otherwise), silent)

    assert [(row["target"], row["name"], row["now"], row["copies"]) for row in report.renamed] == [
        ("audit", "a.b2", "(not taken)", 1),
        ("erp", "a.b1", "b.1", 1),
        ("erp", "a.b2", "(not taken)", 1),
    ]
    told = [finding.text.partition(" are not")[0] for finding in report.findings]
    assert told == [
        "1 names sent by route 'orders' to 'audit'",
        "2 names sent by route 'orders' to 'erp'",
    ]
    assert report.verdict == "not clean: 2 faults in the archive"
