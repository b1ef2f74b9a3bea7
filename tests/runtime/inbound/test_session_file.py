"""The file of the subscriptions that brokers keep: read again, damaged, and not writable."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.runtime.inbound.session_file import SessionFile


def test_another_process_reads_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "journals" / "g.sessions"
    first = SessionFile(path)
    first.save("mqtt://a:1883 g", {"b/#", "a"})
    first.save("mqtt://b:1883 g", {"c"})
    first.save("mqtt://b:1883 g", ())

    again = SessionFile(path)
    assert again.load("mqtt://a:1883 g", str) == ["a", "b/#"]
    assert not again.load("mqtt://b:1883 g", str)
    assert path.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[1]",
        '{"a": 1}',
        '{"crc32": 0, "content": [{}, []]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    path = tmp_path / "g.sessions"
    path.write_text(text)

    store = SessionFile(path)

    assert [store.load(each, str) for each in ("a", "b", "a")] == [None] * 3
    (warning,) = caplog.records
    assert f"{path}: is damaged" in warning.message
    assert "may stay at a broker" in warning.message
    store.save("a", ["b"])
    store.save("b", ())
    assert store.load("b", str) == []
    assert SessionFile(path).load("a", str) == ["b"]


def test_a_changed_digit_is_damage_and_what_is_not_saved_again_stays_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "g.sessions"
    first = SessionFile(path)
    first.save("a", ["35"])
    first.save("b", ["7"])
    path.write_text(path.read_text().replace("35", "36"))
    store = SessionFile(path)

    assert [store.load(each, int) for each in "abc"] == [None] * 3
    (warning,) = caplog.records
    assert f"{path}: is damaged (its checksum does not fit)" in warning.message
    store.save("b", ())
    again = SessionFile(path)
    assert [again.load(each, int) for each in "abc"] == [None, [], None]
    assert len(caplog.records) == 1


def test_a_value_that_cannot_be_read_is_a_warning_and_the_others_are_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "g.sessions"
    first = SessionFile(path)
    first.save("a", ["35x"])  # another version of the gateway may write it
    first.save("b", ["35"])
    store = SessionFile(path)

    assert [store.load(each, int) for each in "abc"] == [None, [35], []]
    (warning,) = caplog.records
    assert f"{path}: is damaged (invalid literal" in warning.message
    store.save("a", ["3"])
    assert SessionFile(path).load("a", int) == [3]


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway")
    (tmp_path / "file").write_text("")
    store = SessionFile(tmp_path / "file" / "g.sessions")

    store.save("a", ["b"])

    assert "cannot be written" in caplog.text
    assert store.load("a", str) == ["b"]
    (tmp_path / "file").unlink()
    store.save("a", ["b"])
    assert SessionFile(tmp_path / "file" / "g.sessions").load("a", str) == ["b"]
