from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from gateway.archive.retention import forget
from gateway.archive.segments.convert import main
from gateway.archive.storage import Here
from tests.archive.samples import archive, delivered

TODAY = date(2026, 3, 14)


def filled(root: Path) -> None:
    """Rows of five days, and folders that are no days."""
    for number in range(5):
        day = datetime(2026, 3, 14 - number, 12, tzinfo=UTC)
        archive(root, delivered([1], time=int(day.timestamp()) * 1_000_000), start=number + 1)
    for name in ("date=soon", "_reconciled/date=2026-03-01", "notes"):
        (root / name).mkdir(parents=True)


def days(root: Path, folder: str) -> list[int]:
    return sorted(int(path.name[-2:]) for path in (root / folder).glob("date=2026-*"))


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        pytest.param(0, [13, 14], id="never-the-current"),
        pytest.param(1, [13, 14], id="one-whole-day"),
        pytest.param(3, [11, 12, 13, 14], id="three"),
        pytest.param(30, [10, 11, 12, 13, 14], id="all"),
    ],
)
def test_old_days_go_with_their_digests(tmp_path: Path, keep: int, left: list[int]) -> None:
    filled(tmp_path)

    gone = forget(Here(tmp_path), keep, TODAY)

    assert sorted(day.day for day in gone) == [day for day in range(10, 15) if day not in left]
    assert [days(tmp_path, folder) for folder in (".", "_digests", "_pairs")] == [left] * 3
    others = ("date=soon", "_reconciled/date=2026-03-01", "notes")
    assert all((tmp_path / name).is_dir() for name in others)


def test_the_converter_removes_old_days_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recent = datetime.now(UTC) - timedelta(hours=1)
    archive(tmp_path, delivered([1], time=1_000_000), start=1)
    archive(tmp_path, delivered([2], time=int(recent.timestamp()) * 1_000_000), start=2)

    assert main([str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("date=*"))) == 2
    assert main([str(tmp_path), "--keep-days", "7"]) == 0

    assert [path.name for path in tmp_path.glob("date=*")] == [f"date={recent:%Y-%m-%d}"]
    assert "1970-01-01 is removed, as the archive keeps 7 days" in capsys.readouterr().err
