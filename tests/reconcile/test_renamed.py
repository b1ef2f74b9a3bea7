"""Comparison of sent names with the translation of another mapping."""

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


def silent(_: str, __: float | None = None) -> None:
    return None


def otherwise(route: str, target: str, name: str) -> str:
    """A changed mapping: another name at one target, and one name without a route."""
    if (route, target, name) == ("orders", "erp", "a/b1"):
        return "b.1"
    return "(not taken)" if name == "a/b2" else name.replace("/", ".")


def test_names_that_the_mapping_changed_are_findings(tmp_path: Path) -> None:
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
    texts = [finding.text.partition(" differently")[0] for finding in report.findings]
    assert texts == [
        "the mapping now translates 1 names of route 'orders' to 'audit'",
        "the mapping now translates 2 names of route 'orders' to 'erp'",
    ]
    assert report.verdict == "not clean: 2 errors in the archive"
