from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gateway.archive.layout import journal_folder
from gateway.cli import main
from gateway.clock import now
from gateway.config.load import load
from gateway.runtime.gateway import Gateway
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON, archive, identity, received
from tests.night.archive.verification.chained import KEY, sealed_day, segment_of
from tests.waiting import PATIENCE


def verify(*arguments: object) -> int:
    return main(["archive", "verify", *map(str, arguments)])


def test_a_sealed_archive_is_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sealed_day(tmp_path)

    assert verify(tmp_path) == 0

    assert capsys.readouterr().out.splitlines()[-2:] == [
        "10 seals, 10 segments, 44 rows",
        "proven: nothing is missing or changed",
    ]


def test_a_missing_segment_is_not_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sealed_day(tmp_path)
    segment = segment_of(tmp_path, made.seals[2])
    segment.unlink()

    assert verify(tmp_path, "--date", DAY) == 1

    first, *_, absent, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"error: {segment.relative_to(tmp_path)}: it is absent; ")
    assert first.endswith("[missing-segment]")
    assert absent == "absent or changed: 6 more rows that seals list"
    assert last == "not proven: 1 error"

    assert verify(tmp_path, "--date", DAY, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["findings"][0]["rule"] == "missing-segment"
    assert found["findings"][0]["weight"] == "error"
    assert (found["version"], found["proven"], found["unproven"]) == (1, False, 6)


def test_a_stopped_gateway_has_not_run_since_then_and_is_not_away_in_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "gateway: {name: edge}\n"
        "endpoints: {a: {kind: memory, dialect: mqtt, broker: verify}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}\n"
        "archive: {path: archive}\n"
    )
    gateway = Gateway(load(config))
    gateway.start()
    gateway.stop(PATIENCE)

    assert verify(tmp_path / "archive") == 0
    assert "edge has not run since " in capsys.readouterr().out

    monkeypatch.setattr("gateway.night.cli.verify.now", lambda: now() + 86_400_000_000)
    assert verify(tmp_path / "archive") == 0
    assert "edge did not run from " in capsys.readouterr().out


@pytest.mark.parametrize("by", ["file", "environment", "no"])
def test_the_key_is_a_file_or_a_variable(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by: str,
) -> None:
    sealed_day(tmp_path / "archive", KEY)
    (tmp_path / "key").write_bytes(KEY + b"\n")
    if by == "environment":
        monkeypatch.setenv("GATEWAY_SEAL_KEY", KEY.decode())
    option = ["--seal-key", tmp_path / "key"] if by == "file" else []

    assert verify(tmp_path / "archive", "--date", DAY, *option) == 0

    assert ("[unchecked-seals]" in capsys.readouterr().out) == (by == "no")


def test_another_key_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sealed_day(tmp_path / "archive", KEY)
    (tmp_path / "key").write_text("another key")

    assert verify(tmp_path / "archive", "--date", DAY, "--seal-key", tmp_path / "key") == 1
    assert "or the key is another one [forged-seal]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["{}/absent"], "is not a folder\n"),
        (["{}/gateway.yaml"], "is not a folder; it is a configuration: give its `archive.path`"),
        (["{}"], "no gateway has written to it; check the path"),
        (["{}", "--date", "yesterday"], "write YYYY-MM-DD"),
        (["{}", "--seal-key", "{}/absent"], "cannot be read"),
        (["{}", "--seal-key", "/dev/null"], "is empty; write the value of archive.seal_key"),
        (["s3://night/a", "--buffer", "{}/absent"], "is not a folder"),
        (["ftp://night/a"], "ftp:// is no archive location"),
    ],
)
def test_wrong_arguments_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    (tmp_path / "gateway.yaml").touch()
    assert verify(*(each.format(tmp_path) for each in arguments)) == 2
    assert reason in capsys.readouterr().err


def test_an_archive_in_a_bucket_is_verified_with_its_buffer(
    tmp_path: Path,
    bucket: Bucket,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket.start()
    journal_folder(tmp_path).mkdir()
    (journal_folder(tmp_path) / f"edge-{NOON}-000000.open").write_bytes(b"GWJRNL\0\3")

    assert verify(bucket.url, "--buffer", tmp_path, "--date", DAY) == 1

    assert "[unconverted-journal]" in capsys.readouterr().out


@pytest.mark.parametrize("sealed", [False, True])
def test_an_open_journal_is_not_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sealed: bool
) -> None:
    if sealed:
        sealed_day(tmp_path)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "gateway: {name: live}\n"
        "endpoints: {a: {kind: memory, dialect: mqtt, broker: open}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}\n"
        "archive: {path: .}\n"
    )
    gateway = Gateway(load(config))
    gateway.start()
    try:
        assert verify(tmp_path) == 0
        out = capsys.readouterr().out
        assert verify(tmp_path, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
    finally:
        gateway.stop(PATIENCE)

    assert "rows not proven yet: 1 journal of a process that runs\n" in out
    assert ("proven: nothing" in out) == facts["proven"] == sealed
    assert facts["open_journals"] == 1


def test_a_journal_of_a_process_that_ended_says_what_seals_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal_folder(tmp_path).mkdir()
    (journal_folder(tmp_path) / f"edge-{NOON}-000000.open").write_bytes(b"GWJRNL\0\3")
    verify(tmp_path)

    out = capsys.readouterr().out
    assert "rows not proven yet: 1 journal of edge, whose process ended before" in out
    assert f"or the next night: gateway reconcile {tmp_path}" in out


def test_the_ids_of_a_name_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive(tmp_path, received([7]), received([8]))
    capsys.readouterr()

    assert main(["archive", "show", str(tmp_path), "--name", "a/b7"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("2026-03-14 12:00:00.000000 UTC  edge  orders  received  ")
    assert line.endswith(identity(7).hex())

    assert main(["archive", "show", str(tmp_path), "--name", "a/none"]) == 1
    assert "a/none: is in no row of" in capsys.readouterr().out
    for words in ([], [identity(7).hex(), "--name", "a/b7"]):
        assert main(["archive", "show", str(tmp_path), *words]) == 2
        assert "give an ID, or --name NAME" in capsys.readouterr().err


def test_no_message_is_shown_of_a_folder_that_is_no_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["archive", "show", str(tmp_path), "absent"]) == 2
    assert "no gateway has written to it; check the path" in capsys.readouterr().err


def test_every_row_of_a_message_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = received([7], source_name="a\x1b[2J", origin_id="ID:\u202e1", payload=b"\x1b]0;x")
    archive(tmp_path, rows, received([8]))
    capsys.readouterr()

    for given in (identity(7).hex(), "ID:\u202e1"):
        assert main(["archive", "show", str(tmp_path), given]) == 0
        out = capsys.readouterr().out
        assert out.splitlines()[0] == "2026-03-14 12:00:00.000000 UTC  edge  orders  received"
        assert "  name         a/b7" in out
        assert f"  id           {identity(7).hex()}" in out
        assert "a\\x1b[2J" in out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "b8" not in out

    assert main(["archive", "show", str(tmp_path), identity(7).hex(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == 100

    assert main(["archive", "show", str(tmp_path), identity(9).hex()]) == 1
    assert main(["archive", "show", str(tmp_path), identity(7).hex(), "--date", "2026-03-20"]) == 1


def test_a_file_whose_name_is_no_text_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sealed_day(tmp_path)
    segment = segment_of(tmp_path, made.seals[0])
    folder = os.fsencode(segment.parent)
    for name in (b"\xff\xfe.parquet", b"a\nproven: b\x1b[31m.parquet"):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(segment.read_bytes())
    for other in (b"_seals/date=" + str(DAY).encode(), b"_routes", b".journal"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + other)).mkdir(exist_ok=True)
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + other + b"/\xff-1-1.json")).touch()

    assert verify(tmp_path) == 1

    lines = capsys.readouterr().out.splitlines()
    assert any("\\udcff\\udcfe.parquet: " in line for line in lines)
    assert [line for line in lines if line.startswith("proven")] == []
    assert [line for line in lines if "damaged-routes" in line or "forged-seal" in line]
