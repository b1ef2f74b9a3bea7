"""One table has the classes of a copy: a new class is one row of it, and one rule."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gateway
from docs.class_tables import classes
from gateway.model import copy_class
from gateway.model.copy_class import CLASSES, COLUMNS, CopyClass
from gateway.night.reconcile.classify.copy_classes import RULES

SOURCES = Path(str(gateway.__file__)).parent
NEW_CLASS = """
    MISPLACED = ClassFacts(
        name="misplaced",
        severity=Severity.BREACH,
        condition="it arrived at another target",
        meaning="arrived at another target",
        advice="Look at the mapping.",
        chart_style="bad",
    )


CLASSES: Final"""
# Prints what each reader of the classes shows of 3 copies of the new one.
PROGRAM = """
import io, json, sys
from contextlib import redirect_stdout
from datetime import date
from pathlib import Path
from types import ModuleType

import gateway.model

source = Path(gateway.model.__path__[0], "copy_class.py").read_text()
sys.modules["gateway.model.copy_class"] = module = ModuleType("gateway.model.copy_class")
exec(source.replace("\\n\\nCLASSES: Final", sys.argv[1], 1), module.__dict__)

from rich.console import Console

from gateway.cli import make_parser
from gateway.night.reconcile.classify import result_tables
from gateway.night.reconcile.follow.day import FollowOptions
from gateway.night.reconcile.follow.follow import Follower
from gateway.night.reconcile.follow.state import FollowedDay
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.metrics import write_metrics
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.run import Run
from gateway.night.reconcile.report.summary import to_json
from gateway.night.reconcile.report.terminal import print_report

worst = result_tables.worst_names([result_tables.EXCEPTIONS.empty_table()], 1)
root, day = Path(sys.argv[2]), date(2026, 3, 14)
row = {"route": "orders", "target": "erp", "received": 9, "delivered": 6, "misplaced": 3}
name = {"route": "orders", "name": "a/b", "copies": 3, "misplaced": 3}
hour = {"hour": "2026-03-14T12:00:00+00:00", **row}
sample = {"class": "misplaced", "id": "01", "route": "orders", "target": "erp", "name": "a/b"}
report = Report(str(root), day, (), [row], samples=[sample], names=[name], whole_day=[hour])
follower = Follower(FollowOptions(root, root), print, print)
follower.days[day] = FollowedDay(day, [row])
text = io.StringIO()
print_report(Run(report), Console(file=text))
write_metrics(Run(report), root / "night.prom", 0, 1.0)
options = ["replay", "a", "--config", "c", "--route", "r", "--from", "d", "--to", "d"]
print(json.dumps({
    "terminal": text.getvalue(),
    "page": page(report),
    "summary": json.loads(to_json(report)),
    "metrics": (root / "night.prom").read_text(),
    "follow": json.loads(follower.summary()),
    "replay": make_parser("replay").parse_args([*options, "--class", "misplaced"]).class_,
    "tables": [*result_tables.MINUTES.names, *worst.column_names],
}))
"""


def test_a_new_class_needs_one_row(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, NEW_CLASS, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # the program above

    shown = json.loads(done.stdout)
    headline = "Not clean: 6 of 9 deliveries arrived; 3 misplaced"
    lines = shown["terminal"].splitlines()
    assert {headline, "verdict: not clean: 3 misplaced", "misplaced 3"} <= set(lines)
    assert any(line.startswith("misplaced: 01 orders -> erp") for line in lines)
    assert shown["summary"]["headline"] == headline
    assert shown["summary"]["status"] == 1
    assert shown["summary"]["totals"]["misplaced"] == 3
    assert 'gateway_reconcile_copies{class="misplaced"} 3' in shown["metrics"]
    assert shown["follow"]["dates"][0]["verdict"] == "not clean: 3 misplaced"
    assert shown["follow"]["dates"][0]["totals"]["misplaced"] == 3
    assert shown["replay"] == "misplaced"
    assert shown["tables"].count("misplaced") == 2
    for part in (
        headline,
        "3 misplaced: these deliveries arrived at another target.",
        "Misplaced (3): Look at the mapping.",
        "<dt>misplaced</dt><dd>Deliveries that arrived at another target.</dd>",
        '<td class="number bad" data-label="misplaced"><b>3</b>',
        "Not arrived by hour, all routes: 3 misplaced",
        'aria-label="Samples: misplaced"',
    ):
        assert part in shown["page"]


def test_every_class_has_a_rule_and_a_row_of_the_document() -> None:
    assert set(RULES) == set(CopyClass)
    assert list(RULES)[-1] is CopyClass.MISSING  # the rule that fits always
    named = [row.split("|")[1].strip() for row in classes([], [])[2:]]
    assert named == [each.value for each in RULES]


def test_the_last_lines_of_the_terminal_end_with_the_gravest_class() -> None:
    assert COLUMNS[0] == "received"
    assert COLUMNS[-1] == CopyClass.MISSING.value
    assert sorted(COLUMNS[1:]) == sorted(CLASSES)


def test_no_other_module_spells_the_classes() -> None:
    """Words such as `delivered` also have other meanings: a list with two of them is of classes."""
    modules = [path for path in SOURCES.rglob("*.py") if path != Path(str(copy_class.__file__))]
    own = {name for name in CLASSES if not name.isalpha()}

    spelled = {
        path.relative_to(SOURCES).as_posix(): sorted(found)
        for path in modules
        if (found := set(_spelled(ast.parse(path.read_text("utf-8")), own)))
    }

    assert spelled == {}


def test_no_template_spells_the_classes() -> None:
    own = [name for name in CLASSES if name != CopyClass.DELIVERED.value]

    spelled = {
        (path.name, name)
        for path in (SOURCES / "reconcile" / "report" / "page").rglob("*.*")
        for name in own
        if f'"{name}"' in path.read_text("utf-8")
    }

    assert spelled == set()


def _spelled(tree: ast.Module, own: set[str]) -> Iterator[str]:
    """Yield the names of classes that a module spells, alone or in a list."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in own:
            yield str(node.value)
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            names = {each.value for each in items if isinstance(each, ast.Constant)}
            if len(found := names & set(CLASSES)) > 1:
                yield from map(str, found)
