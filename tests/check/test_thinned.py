"""Findings of `gateway check` on a target that gets less."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main
from tests.check.fleets import Check

CONFIG = """\
endpoints:
  plant: {kind: mqtt, host: localhost, tls: {}}
  office: {kind: mqtt, host: office, tls: {}}
SPOOLroutes:
  telemetry:
    from: {endpoint: plant, pattern: "a/{rest...}"}
    to: {endpoint: office, template: "b/{rest...}", thin: {THIN}}
"""


def text(thin: str, spool: str = "spool: {path: spool}\n") -> str:
    return CONFIG.replace("THIN", thin).replace("SPOOL", spool)


@pytest.mark.parametrize(
    ("thin", "words"),
    [
        ("seconds: 10s", "one message a name in 10 s"),
        ("seconds: 0.5", "one message a name in 0.5 s"),
        ("on_change: true", "changes only"),
    ],
)
def test_a_thinned_route_never_delivers_every_message(thin: str, words: str, check: Check) -> None:
    status, lines = check(gateway=text(thin))

    assert status == 0
    assert f"     not every message: {words}, and these at least once" in lines


def test_explain_says_it_beside_the_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(text("seconds: 10"))

    assert main(["explain", "a/x", "--config", str(file)]) == 0
    assert "     not every message: one message a name in 10 s\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("thin", "meant"),
    [("10", "{seconds: 10}"), ("1.5s", "{seconds: 1.5s}"), ("on_change", "{on_change: true}")],
)
def test_a_value_without_its_key_gets_a_hint(thin: str, meant: str, check: Check) -> None:
    status, lines = check(gateway=text("seconds: 1").replace("{seconds: 1}", thin))

    assert status == 1
    assert f"expected a mapping, not {thin!r}; write `thin: {meant}`" in lines[0]


@pytest.mark.parametrize("thin", ["", "on_change: false", "seconds: 10, on_change: true"])
def test_a_rule_is_one_of_two(thin: str, check: Check) -> None:
    status, lines = check(gateway=text(thin))

    assert status == 1
    assert (
        "gateway.yaml:8:59: error: `thin` has one of `seconds: N` and `on_change: true`" in lines[0]
    )


@pytest.mark.parametrize(
    ("thin", "spool", "warns"),
    [
        ("seconds: 10", "", True),
        ("seconds: 10", "spool: {path: spool}\n", False),
        ("on_change: true", "", False),
    ],
)
def test_without_a_spool_the_latest_is_not_sent(
    thin: str, spool: str, *, warns: bool, check: Check
) -> None:
    _, lines = check(gateway=text(thin, spool))

    found = [line for line in lines if "and never the latest" in line]
    assert len(found) == warns
    if warns:
        assert "without a spool 'office' gets the first message of each 10 s" in found[0]
        assert "add a section `spool`" in found[0]


@pytest.mark.parametrize(("thin", "warns"), [("seconds: 10", True), ("on_change: true", False)])
def test_names_of_fields_lose_their_order(thin: str, *, warns: bool, check: Check) -> None:
    named = text(thin).replace("b/{rest...}", "b/{property.line}/{rest...}")
    _, lines = check(gateway=named.replace("host: office", "host: office, allow: ['b/#']"))

    assert any("nights call a late message out of order" in line for line in lines) is warns


SHARED = """\
endpoints:
  plant: {kind: mqtt, host: localhost, tls: {}}
  office: {kind: mqtt, host: office, tls: {}}
  other: {kind: mqtt, host: HOST, tls: {}, client_id: other}
spool: {path: spool}
routes:
  changes:
    from: {endpoint: plant, pattern: "a/{rest...}"}
    to: {endpoint: office, template: "c/{rest...}", thin: {on_change: true}}
  alarms:
    from: {endpoint: plant, pattern: "b/{rest...}"}
    to: {endpoint: other, template: "TEMPLATE/{rest...}"}
"""


@pytest.mark.parametrize(
    ("host", "template", "warns"),
    [("office", "c", True), ("office", "d", False), ("elsewhere", "c", False)],
)
def test_another_endpoint_may_send_a_thinned_name(
    host: str, template: str, *, warns: bool, check: Check
) -> None:
    _, lines = check(gateway=SHARED.replace("HOST", host).replace("TEMPLATE", template))

    found = [line for line in lines if "'other' may send names there that 'office' thins" in line]
    assert len(found) == warns
