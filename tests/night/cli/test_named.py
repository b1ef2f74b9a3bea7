"""A remote archive that does not answer is one sentence in every command that reads it."""

from __future__ import annotations

import pytest

from gateway.cli import main

URL = "s3://bucket/x?endpoint_override=http%3A%2F%2F127.0.0.1%3A9&region=us-east-1"  # nobody there


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["archive", "show", URL, "id"], id="show"),
        pytest.param(["archive", "names", URL, "--find", "name"], id="names"),
        pytest.param(["archive", "retire", URL, "writer", "--why", "gone"], id="retire"),
        pytest.param(["archive", "acknowledge", URL, "r", "p", "--why", "x"], id="acknowledge"),
        pytest.param(["archive", "verify", URL], id="verify"),
        pytest.param(["archive", "forget", URL, "--keep-days", "7"], id="forget"),
    ],
)
def test_an_archive_out_of_reach_is_one_sentence(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("gateway: ")
    assert "Traceback" not in shown
    assert "Could not connect" in shown
