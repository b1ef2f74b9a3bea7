"""The commands `gateway archive compact` and `gateway archive names`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.archive.storage import LocalStorage
from gateway.cli import main
from gateway.night.archive.night_record import DateRecord, Night
from gateway.night.reconcile.nights.chain import write_night
from tests.night.reconcile.shortening import Sender, long_name


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_compaction_removes_old_days_and_lists_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    yesterday, old = noon - timedelta(days=1), noon - timedelta(days=9)
    times = [int(each.timestamp()) * 1_000_000 for each in (old, yesterday)]
    sender = Sender(tmp_path)
    name = sender.send(long_name(1), "erp", "ems", times)
    sender.close()
    root, day = str(tmp_path), f"{yesterday:%Y-%m-%d}"
    settled = DateRecord(day, "", 1, 0, 0, settled=True)
    write_night(LocalStorage(tmp_path), Night(1, "", 0, day, 7, dates=(settled,)), None)

    assert main(["archive", "compact", root, "--keep-days", "7"]) == 0
    printed = capsys.readouterr()
    (names,) = (tmp_path / "_names").glob("*.jsonl")
    names.write_text(names.read_text() + "no name\n")
    late = main(
        ["archive", "compact", root, "--date", f"{old:%Y-%m-%d}", "--keep-days", "7", "--json"]
    )
    printed_late = capsys.readouterr()

    assert printed.out.splitlines() == [
        f"1 segment of {day} became 1 merged segment",
        "removed: 1 older date, 2 files",
        "1 shortened name, 1 of them sent to 1 target",
        f"{day} is judged and merged: _done/date={day}/done.json",
    ]
    assert [path.name for path in tmp_path.glob("date=*")] == [f"date={yesterday:%Y-%m-%d}"]
    assert main(["archive", "names", root, "--find", name]) == 0
    shown = capsys.readouterr().out
    assert f"  stands for  {long_name(1).replace('/', '.')}\n" in shown
    assert f"  source      {long_name(1)}\n" in shown
    assert f"  sent        1 time, {yesterday:%Y-%m-%d} 12:00:00 to" in shown
    assert late == 1
    facts = json.loads(printed_late.out)
    assert facts.pop("findings")[0]["place"].startswith(f"_names/{names.name}:")
    assert facts == {
        "version": 1, "date": f"{old:%Y-%m-%d}", "segments": 0, "rows": 0, "merged": [],
        "removed": {"dates": [], "files": 0}, "done": None,
        "names": {"names": 1, "sent": 1, "targets": 1},
    }  # fmt: skip
    assert main(["archive", "names", root, "--find", name, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["name"], entry["count"], entry["first_time"][:10]) == (name, 1, day)
    assert "older than the 7 days to keep; not compacted" in printed_late.err
    assert f"error: _names/{names.name}:" in printed_late.err
    assert main(["archive", "names", root, "--find", "nothing"]) == 1
    assert main(["archive", "names", root, "--json"]) == 1
    built = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (built["version"], built["names"], len(built["findings"])) == (1, 1, 1)


WRONG = [
    pytest.param(["compact", "{}", "--keep-days", "0"], "--keep-days 0: is not 1", id="keep"),
    pytest.param(["compact", "{}/none"], "is not a folder", id="compact-nothing"),
    pytest.param(["names", "{}/none"], "is not a folder", id="names-of-nothing"),
    pytest.param(["names", "{}", "--find", "x"], "_dictionary: is absent", id="no-dictionary"),
    pytest.param(["names", "ftp://host/x"], "ftp:// is no archive location", id="names-elsewhere"),
]


@pytest.mark.parametrize(("arguments", "reason"), WRONG)
def test_wrong_arguments_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    given = [word.format(tmp_path) for word in arguments]

    assert main(["archive", *given]) == 2
    assert reason in capsys.readouterr().err
