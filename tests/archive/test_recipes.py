"""The recipes of the documents for Iceberg and for Airflow do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.night_record import DateRecord, Night
from gateway.night.reconcile.nights.chain import write_night
from gateway.night.reconcile.nights.marker import mark
from tests.archive.samples import DAY
from tests.night.archive.compaction.days import merged_here, write_day

DOCS = Path(__file__).parents[2] / "docs"
CATALOG = """\
catalog:
  gateway:
    type: sql
    uri: sqlite:///{0}/catalog.db
    warehouse: file://{0}/warehouse
"""

READ = """
table.refresh()
print(table.scan().to_arrow().num_rows, table.inspect.partitions().num_rows)
"""


class Again(Exception):  # noqa: N818  # as Airflow's AirflowException
    """A task that is tried again."""


class ForGood(Again):
    """A task that is not."""


def recipe(page: str, name: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    (found,) = re.findall(rf"```python {name}\n(.*?)```", text, re.DOTALL)
    return str(found)


def done(root: Path, gateway: str) -> None:
    """Merge the date with the rows of one more gateway, and mark it."""
    write_day(ArchiveLocation(root), [gateway])
    compact_day(ArchiveLocation(root), DAY, merged_here, lambda _: None)
    record = DateRecord(str(DAY), "", 1, 0, 0, settled=True)
    write_night(LocalStorage(root), Night(1, "", 0, str(DAY), 7, dates=(record,)), None)
    assert mark(LocalStorage(root), DAY)


@pytest.mark.nightly
def test_a_done_date_is_committed_to_iceberg_once_and_leaves_it_before_its_files(
    tmp_path: Path,
) -> None:
    root = tmp_path / "archive"
    (tmp_path / "warehouse").mkdir()
    (tmp_path / ".pyiceberg.yaml").write_text(CATALOG.format(tmp_path))

    def committed(keep_days: int) -> tuple[int, int]:
        """Run the recipe; return the rows and the partitions of the table."""
        code = recipe("archive.md", "iceberg") + READ
        command = [sys.executable, "-W", "ignore", "-c", code, str(root), str(DAY), str(keep_days)]
        home = {"PYICEBERG_HOME": str(tmp_path)}
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=home)  # noqa: S603
        rows, days = ran.stdout.split()
        return int(rows), int(days)

    done(root, "east")
    rows = sum(pq.read_metadata(path).num_rows for path in root.glob("date=*/hour=*/*.parquet"))
    assert committed(30) == (rows, 1)
    done(root, "late")  # a late writer: its rows are in further merged segments
    assert committed(30) == committed(30) == (2 * rows, 1)

    assert committed(-1) == (0, 0)
    assert not list((tmp_path / "warehouse").rglob("*.parquet"))  # only metadata changed
    assert all(path.is_file() for path in root.glob("date=*/hour=*/*.parquet"))


class Tasks:
    """Stands in for the decorators of Airflow, which is not installed: notes each task and edge."""

    def __init__(self) -> None:
        self.called: list[tuple[str, str, tuple[str, ...]]] = []
        self.edges: list[tuple[str, str]] = []

    def dag(self, **_: object) -> Callable[[Callable[[], None]], Callable[[], None]]:
        return lambda function: function

    def task(
        self, _: object, task_id: str, trigger_rule: str = "all_success"
    ) -> Callable[..., Called]:
        def called(*words: str) -> Called:
            self.called.append((task_id, trigger_rule, words))
            return Called(task_id, self.edges)

        return called


@dataclass
class Called:
    """A task of the recipe; `>>` notes an edge."""

    name: str
    edges: list[tuple[str, str]]

    def __rshift__(self, other: Called) -> None:
        self.edges.append((self.name, other.name))


def airflow_recipe(
    monkeypatch: pytest.MonkeyPatch, tasks: Tasks | None = None
) -> dict[str, Callable[..., object]]:
    """Run the block of the page, and return what it defines."""
    exceptions, decorators = ModuleType("airflow.exceptions"), ModuleType("airflow.decorators")
    vars(exceptions).update(AirflowException=Again, AirflowFailException=ForGood)
    tasks = tasks or Tasks()
    vars(decorators).update(dag=tasks.dag, task=tasks.task)
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.exceptions", exceptions)
    monkeypatch.setitem(sys.modules, "airflow.decorators", decorators)
    defined: dict[str, Callable[..., object]] = {}
    exec(recipe("operations.md", "airflow"), defined)  # noqa: S102  # the recipe of the page
    return defined


def test_airflow_compacts_after_the_night_whatever_its_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole block runs as it is pasted: it imported no `dag`."""
    tasks = Tasks()
    airflow_recipe(monkeypatch, tasks)

    assert tasks.called == [
        ("reconcile", "all_success", ("reconcile", "ARCHIVE")),
        ("compact", "all_done", ("archive", "compact", "ARCHIVE")),
    ]
    assert tasks.edges == [("reconcile", "compact")]


@pytest.mark.parametrize(
    ("status", "expected"), [(0, 0), (3, 3), (1, "for good"), (2, "again"), (-9, "for good")]
)
def test_airflow_retries_a_night_without_an_answer_only(
    monkeypatch: pytest.MonkeyPatch, status: int, expected: int | str
) -> None:
    defined = airflow_recipe(monkeypatch)

    def ended(command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        assert (command, check) == (["gateway", "reconcile", "ARCHIVE"], False)
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr(subprocess, "run", ended)
    try:
        found = defined["gateway"]("reconcile", "ARCHIVE")
    except ForGood:
        found = "for good"
    except Again:
        found = "again"

    assert found == expected
