"""`gateway status` and `gateway top` against a server that shows what the test says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config.process import WebRef
from tests.brokers.mosquitto import free_port
from tests.web.site_samples import Shown, endpoint, refusal, route, served, status

TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105  # of the tests alone
LOST = endpoint("office", "sink", connection="lost", reason="office: gone", spooled_messages=1_234)


def test_a_ready_gateway_is_shown_and_is_a_yes(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Shown(status())) as server:
        assert main(["status", "--url", server.url]) == 0

    said = capsys.readouterr().out
    assert "plant-1 ready" in said
    assert "telemetry" in said


def test_what_is_wrong_is_shown_and_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    routes = (route(rules={"too-long": 7}, refusals=(refusal("a/b"),), heartbeat_age=99.0),)
    with served(Shown(status(endpoints=(LOST,), routes=routes))) as server:
        assert main(["status", "--url", server.url]) == 1

    said = capsys.readouterr().out
    for part in ("not ready", "office: gone", "1,234", "too-long 7", "99 s", "a/b"):
        assert part in said


def test_scripts_get_the_answer_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Shown(status(endpoints=(LOST,)))) as server:
        assert main(["status", "--json", "--url", server.url]) == 1

    found = json.loads(capsys.readouterr().out)
    assert found["reasons"] == ["endpoint office (sink): lost, office: gone"]


def test_top_shows_as_many_looks_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with served(Shown(status())) as server:
        assert main(["top", "--count", "2", "--seconds", "0.1", "--url", server.url]) == 0

    assert capsys.readouterr().out.count("plant-1 ready") == 2


def test_top_says_that_nobody_answers_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["top", "--count", "2", "--seconds", "0.1", "--url", url]) == 0

    assert capsys.readouterr().out.replace("\n", " ").count("no answer: Connection refused") == 2


def test_a_token_opens_what_nothing_else_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text(f"{TOKEN}\n")
    wrong.write_text("another\n")
    with served(Shown(status()), WebRef(port=0, token=TOKEN)) as server:
        assert main(["status", "--json", "--url", server.url, "--token-file", str(right)]) == 0
        for options in ([], ["--token-file", str(wrong)]):
            assert main(["status", "--url", server.url, *options]) == 2

    said = capsys.readouterr()
    assert said.err.count("it wants another token; give it with --token-file") == 2
    assert TOKEN not in said.err + said.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--url", "ftp://127.0.0.1"], "ftp://127.0.0.1: is no address of a gateway"),
        (["--token-file", "/nowhere/token"], "/nowhere/token: cannot read the token"),
        (["--ca-file", "/nowhere/ca.pem"], "/nowhere/ca.pem: cannot be used"),
    ],
)
def test_what_cannot_be_used_is_said(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", *arguments]) == 2
    assert reason in capsys.readouterr().err
