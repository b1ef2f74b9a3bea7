"""Names that are not the translation by the routes of their time, found without `--mapping`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.archive.journal.records import Rows
from gateway.archive.layout import MAX_TIME, NAMES, writer_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import Rules, write_routes
from gateway.archive.storage import LocalStorage
from gateway.cli import main
from gateway.config.load import load
from gateway.night.archive.open_archive import open_archive, opened_at
from gateway.night.archive.parquet import PAIRS_KEY
from gateway.night.archive.verification.contents import VerifiedSegment
from gateway.night.reconcile.classify.renames import run_renames
from gateway.night.reconcile.input.inputs import find_inputs
from gateway.night.reconcile.input.route_history import RouteHistory, mapping_history, read_history
from gateway.night.reconcile.input.row_reader import read_beside, read_segment
from gateway.routing.name_rules import to_rules
from gateway.translate.shorten import digest_of
from tests.archive.samples import DAY, NOON, START, archive, delivered, received

MINUTE = 60_000_000
RELOAD = NOON + 20 * MINUTE
LATER = NOON + 40 * MINUTE
EVER = NOON + 86_400_000_000

CONFIG = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
  erp: {{kind: memory, dialect: ems}}
  audit: {{kind: memory, dialect: ems}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "a/{{rest...}}"}}
    to:
      - {{endpoint: erp, template: "{0}.{{rest...}}"}}
      - {{endpoint: audit, template: "a.{{rest...}}"}}
archive: {{path: {1}}}
"""


def config(tmp_path: Path, first: str = "a", root: Path | None = None) -> Path:
    """A configuration whose names at `erp` begin with `first`."""
    file = tmp_path / f"{first}.yaml"
    file.write_text(CONFIG.format(first, root or tmp_path / "archive"))
    return file


def rules(tmp_path: Path, first: str = "a") -> Rules:
    return to_rules(load(config(tmp_path, first)).routes)


def found(root: Path, history: RouteHistory | None = None) -> list[tuple[object, ...]]:
    """The wrong names, and the copies that were not checked, as an executor finds them."""
    location = ArchiveLocation(root)
    if history is None:
        history, findings = read_history(LocalStorage(root), EVER, None)
        assert not findings
    segments = find_inputs(opened_at(location), DAY).day
    (table,) = run_renames(location, history, segments)
    columns = ("gateway", "target", "name", "now", "copies")
    return sorted(zip(*(table[name].to_pylist() for name in columns), strict=True), key=str)


def copy(number: int, name: str, time: int, receipt: int, *, replayed: bool = False) -> Rows:
    """A delivered row at erp."""
    return delivered(
        [number], time=time, received=receipt, name=name, source_name=f"a/b{number}",
        replayed=replayed,
    )  # fmt: skip


def test_a_wrong_name_is_found(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, copy(1, "a.b1", NOON, NOON), copy(2, "a.forged", NOON, NOON))
    write_routes(root, "edge", rules(tmp_path), START)

    assert found(root) == [("edge", "erp", "a.forged", "a.b2", 1)]


def test_each_copy_is_compared_with_the_routes_of_its_receipt(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(
        root,
        copy(1, "a.b1", NOON, NOON),
        copy(2, "n.b2", NOON, NOON),  # a name that comes later
        copy(3, "a.b3", LATER, NOON),  # spooled
        copy(4, "n.b4", LATER, LATER),
        copy(5, "a.b5", LATER, LATER),  # the name of before
        copy(6, "a.b6", RELOAD + MINUTE, RELOAD + MINUTE),  # the reload reaches its source later
        copy(7, "r.b7", LATER, NOON, replayed=True),
        copy(8, "r.b8", LATER, NOON),
        copy(9, "x.b9", LATER, NOON),
    )
    write_routes(root, "edge", rules(tmp_path), START)
    write_routes(root, "edge", rules(tmp_path, "n"), RELOAD)
    write_routes(root, writer_name("edge", replay=True), rules(tmp_path, "r"), LATER)

    assert found(root) == [
        ("edge", "erp", "a.b5", "n.b5", 1),
        ("edge", "erp", "n.b2", "a.b2", 1),
        ("edge", "erp", "r.b8", "n.b8", 1),
        ("edge", "erp", "x.b9", "r.b9", 1),
    ]


def test_copies_whose_routes_are_not_known_are_not_checked(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, copy(1, "x.b1", NOON, NOON), copy(2, "x.b2", NOON, NOON), gateway="west")
    archive(
        root,
        copy(3, "x.b3", LATER, NOON),  # received before the upgrade
        copy(4, "a.b4", LATER, LATER),
        copy(5, "x.b5", LATER, LATER),
        gateway="edge",
    )
    write_routes(root, "edge", rules(tmp_path), RELOAD)

    assert found(root) == [
        ("edge", "erp", "x.b3", None, 1),
        ("edge", "erp", "x.b5", "a.b5", 1),
        ("west", "erp", "x.b1", None, 1),
        ("west", "erp", "x.b2", None, 1),
    ]


def test_a_name_from_a_field_is_made_again_from_its_row(tmp_path: Path) -> None:
    root = tmp_path / "archive"

    def named(number: int, name: str, fields: str | None) -> Rows:
        return delivered([number], name=name, source_name="a/x", fields=fields)

    archive(
        root,
        named(1, "a.HALL", '{"property.s": "hall"}'),
        named(2, "a.FORGED", '{"property.s": "hall"}'),
        named(3, "a.NONE", '{"property.s": null}'),
        named(4, "a.REDACTED", None),
        named(5, "a.REDACTED", "no JSON"),
    )
    file = config(tmp_path)
    text = file.read_text().replace("a.{rest...}", "a.{property.s|default:none|upper}")
    file.write_text(text.replace("dialect: ems}", 'dialect: ems, allow: [">"]}'))
    write_routes(root, "edge", to_rules(load(file).routes), START)

    assert found(root) == [
        ("edge", "erp", "a.FORGED", "a.HALL", 1),
        ("edge", "erp", "a.REDACTED", None, 1),
        ("edge", "erp", "a.REDACTED", None, 1),
    ]


def test_a_damaged_file_leaves_its_copies_unchecked(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, copy(1, "x.b1", NOON, NOON))
    write_routes(root, "edge", rules(tmp_path), START)
    (root / "_routes" / f"edge-{START}.json").write_bytes(b"{}")

    assert found(root) == [("edge", "erp", "x.b1", None, 1)]


def test_rules_of_a_newer_version_are_a_finding(tmp_path: Path) -> None:
    write_routes(tmp_path, "edge", [{"name": "orders"}], START)

    _, (finding,) = read_history(LocalStorage(tmp_path), EVER, None)

    assert (finding.rule, finding.place) == ("damaged-routes", f"_routes/edge-{START}.json")
    assert "cannot be read" in finding.text


def test_routes_that_ended_a_month_before_are_not_read(tmp_path: Path) -> None:
    for days, first in ((40, "a"), (35, "n"), (0, "a")):
        write_routes(tmp_path, "edge", rules(tmp_path, first), START - days * 24 * 60 * MINUTE)

    history, _ = read_history(LocalStorage(tmp_path), EVER, None)

    assert [each.until for each in history.periods if each.writer == "edge"] == [START, MAX_TIME]


def test_segments_without_pairs_are_read(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, copy(1, "a.b1", NOON, NOON), copy(2, "x.b2", NOON, NOON))
    (segment,) = find_inputs(open_archive(root), DAY).day
    plain = VerifiedSegment(Path("plain.parquet"), sealed=True, size=1)
    archived = read_segment(LocalStorage(root), segment.path)
    pq.write_table(archived, root / plain.path)  # with nothing beside its rows
    assert read_beside(LocalStorage(root), segment.path, PAIRS_KEY) is not None
    assert read_beside(LocalStorage(root), plain.path, PAIRS_KEY) is None
    history = mapping_history(rules(tmp_path))

    (table,) = run_renames(ArchiveLocation(root), history, [plain])

    assert table["name"].to_pylist() == ["x.b2"]


def test_short_names_come_from_the_name_files(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    levels = ("a", *("a-long-level" for _ in range(9)))
    archive(root, delivered([1], source_name=f"a/{digest_of(levels)}", name=".".join(levels)))
    text = CONFIG.format("a", root).replace(
        "dialect: mqtt}", "dialect: mqtt, on_too_long: shorten}"
    )
    back = '  back: {from: {endpoint: erp, pattern: "x.>"}, to: {endpoint: plant}}\narchive:'
    (tmp_path / "both.yaml").write_text(text.replace("archive:", back))
    write_routes(root, "edge", to_rules(load(tmp_path / "both.yaml").routes), START)
    bare = tmp_path / "bare"
    shutil.copytree(root, bare)
    (root / NAMES).mkdir()
    line = json.dumps({"digest": digest_of(levels), "levels": levels})
    (root / NAMES / "edge.jsonl").write_text(f"{line}\n")

    assert found(root) == []
    ((*_, now, _),) = found(bare)
    assert now == "(refused: unknown-digest)"


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_the_command_checks_names_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, output = tmp_path / "archive", tmp_path / "output"
    ends = [
        delivered([number], target, source_name=f"a/b{number}")
        for number in range(4)
        for target in ("erp", "audit")
    ]
    archive(root, received(range(4), ("erp", "audit")), *ends)
    night = ["reconcile", str(root), "--date", str(DAY), "--output", str(output)]
    night += ["--json", str(tmp_path / "summary.json"), "--master", "local[1]"]

    def reconciled(*options: str) -> tuple[int, str]:
        status = main([*night, *options])
        return status, capsys.readouterr().out

    status, printed = reconciled()
    assert status == 0
    assert "names were not checked: the archive has no routes of this date" in printed
    page = (output / f"date={DAY}" / "report.html").read_text()
    assert "Names were not checked: the archive has no routes" in page

    write_routes(root, "edge", rules(tmp_path), START)
    status, printed = reconciled()
    assert (status, "names were not checked" in printed) == (0, False)

    (root / "_routes" / f"edge-{START}.json").unlink()
    write_routes(root, "edge", rules(tmp_path, "n"), START)
    status, printed = reconciled()
    assert status == 1
    assert "4 names of route 'orders' to 'erp': not as the routes that the gateway ran" in printed
    renamed = json.loads((tmp_path / "summary.json").read_text())["renamed"]
    assert [(row["target"], row["name"], row["now"], row["copies"]) for row in renamed] == [
        ("erp", f"a.b{number}", f"n.b{number}", 1) for number in range(4)
    ]

    status, printed = reconciled("--mapping", str(config(tmp_path)))
    assert (status, "names were not checked" in printed) == (0, False)
