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
    assert again.load("mqtt://a:1883 g") == ["a", "b/#"]
    assert not again.load("mqtt://b:1883 g")
    assert path.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", '{"a": 1}', '{"a": null}', "[" * 100_000])
def test_a_damaged_file_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.set_level(logging.WARNING, "gateway")
    path = tmp_path / "g.sessions"
    path.write_text(text)

    store = SessionFile(path)

    assert not store.load("a")
    assert "may stay at a broker" in caplog.text
    store.save("a", ["b"])
    assert SessionFile(path).load("a") == ["b"]


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway")
    (tmp_path / "file").write_text("")
    store = SessionFile(tmp_path / "file" / "g.sessions")

    store.save("a", ["b"])

    assert "cannot be written" in caplog.text
    assert store.load("a") == ["b"]
    (tmp_path / "file").unlink()
    store.save("a", ["b"])
    assert SessionFile(tmp_path / "file" / "g.sessions").load("a") == ["b"]
