"""A lock of a job in the archive's folder leaves no file, also when the job fails."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from gateway.errors import ReconcileError
from gateway.night.archive.archive_lock import exclusive


def test_a_failed_job_leaves_no_lock_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with suppress(ZeroDivisionError), exclusive(path, "another one runs"):
        assert "process " in path.read_text()
        with pytest.raises(ReconcileError, match="another one runs; it is process "):
            exclusive(path, "another one runs").__enter__()
        raise ZeroDivisionError

    assert list(tmp_path.iterdir()) == []
