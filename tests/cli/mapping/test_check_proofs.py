"""Every proof: a configuration that fails it, and the output of `gateway check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS

ENDPOINTS = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  erp: {kind: memory, dialect: ems, allow: ["ERP.>", "A.>"]}
  feed: {kind: memory, dialect: smf}
  tags: {kind: memory, dialect: yami4, limits: {forbidden_characters: "!"}}
routes:
"""
# rule, routes, severity, line, a part of the text, a part of the hint
PROOFS = [
    pytest.param(
        "not-injective", """\
  r:
    from: {endpoint: plant, pattern: "o/{a}/{b}"}
    to: {endpoint: erp, template: "ERP.{a}"}
""", "error", 9, "'o/x/x' and 'o/x/y' both become 'ERP.x'", "use every capture in the template",
        id="not-injective",
    ),
    pytest.param(
        "not-inverse", """\
  r:
    direction: both
    from: {endpoint: feed, pattern: "o/{a}", exclude: ["o/pri*"]}
    to: {endpoint: erp, template: "ERP.{a}"}
""", "warning", 8, "does not come back", "write two routes", id="not-invertible",
    ),
    pytest.param(
        "delivered-twice", """\
  r:
    from: {endpoint: plant, pattern: "ERP/#"}
    to: {endpoint: erp}
  s:
    from: {endpoint: plant, pattern: "ERP/+/b"}
    to: {endpoint: erp}
""", "error", 12, "a message to 'ERP/x/b' reaches 'erp' twice", "narrow one of the patterns",
        id="delivered-twice",
    ),
    pytest.param(
        "unreachable", """\
  r:
    from: {endpoint: plant, pattern: "ERP/+/new", exclude: ["ERP/#"]}
    to: {endpoint: erp}
""", "error", 8, "'ERP/#' excludes every name", "narrow the excludes", id="unreachable",
    ),
    pytest.param(
        "cycle", """\
  r:
    from: {endpoint: plant, pattern: "a/{x}"}
    to: {endpoint: erp, template: "A.{x}"}
  s:
    from: {endpoint: erp, pattern: "A.{x}"}
    to: {endpoint: feed, template: "q/{x}"}
  t:
    from: {endpoint: feed, pattern: "q/{x}"}
    to: {endpoint: plant, template: "a/{x}"}
""", "error", 9, "'a/x' at 'plant' -> 'A.x' at 'erp' (route 'r') -> 'q/x' at 'feed' (route 's')",
        "exclude from one of these routes", id="cycle-of-three-brokers",
    ),
    pytest.param(
        "capture-unused", """\
  r:
    from: {endpoint: plant, pattern: "o/{a}"}
    to: {endpoint: erp, template: "ERP.all", lossy: true}
""", "note", 9, "{a} is not used in 'ERP.all'", "use {a}", id="capture-unused",
    ),
    pytest.param(
        "past-limit", """\
  r:
    from: {endpoint: plant, pattern: "o/{rest...}"}
    to: {endpoint: erp, template: "ERP.{rest...}"}
""", "warning", 9, "past 244 characters (249 less 3 for 3 levels), 64 levels or",
        "on_too_long: shorten",
        id="worst-case",
    ),
    pytest.param(
        "widened", """\
  r:
    from: {endpoint: tags, pattern: "o.{a}"}
    to: {endpoint: plant, template: "o/{a}"}
""", "note", 8, "'o.x.x' is received and dropped, because the route takes 2 components only",
        "nothing to do unless", id="widened",
    ),
    pytest.param(
        "first-place", """\
  r:
    from: {endpoint: feed, pattern: "{a}/{b}"}
    to: {endpoint: plant, template: "{b}/{a}"}
""", "note", 9, "publishers choose how names at 'plant' begin", "begin the template",
        id="first-characters",
    ),
    pytest.param(
        "outside-allow", """\
  r:
    from: {endpoint: plant, pattern: "{a}/{b}"}
    to: {endpoint: erp, template: "{a}.{b}"}
""", "error", 9, "which 'erp' does not allow", "begin the template", id="outside-allow",
    ),
    pytest.param(
        "forbidden-name", """\
  r:
    from: {endpoint: plant, pattern: "o/{a}"}
    to: {endpoint: tags, template: "o.{a}"}
""", "note", 9, "'tags' refuses some names of the route: 'o/!' (yami4: 'o.!': the limits of the"
        " endpoint forbid '!')", "exclude such names", id="forbidden-name",
    ),
    pytest.param(
        "never-sent", """\
  r:
    from: {endpoint: plant, pattern: "o/{a}"}
    to: {endpoint: tags, template: "o!.{a}"}
""", "error", 9, "no name can be sent to 'tags': 'o/x' is refused (yami4: 'o!.x': the limits of the"
        " endpoint forbid '!')", "change the fixed part", id="always-forbidden",
    ),
    pytest.param(
        "never-sent", """\
  r:
    from: {endpoint: feed, pattern: "o/{a}"}
    to: {endpoint: plant, template: "$SYS/broker/{a}"}
""", "error", 9, "(mqtt: '$SYS/broker/x': names that begin with '$SYS' belong to the broker)",
        "change the fixed part", id="names-of-the-broker",
    ),
]  # fmt: skip


@pytest.fixture
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(ENDPOINTS + request.param)
    return file


@pytest.mark.parametrize(
    ("rule", "config", "severity", "line", "text", "hint"), PROOFS, indirect=["config"]
)
def test_a_failed_proof_gives_a_finding_with_place_and_hint(  # the parts of one finding
    capsys: pytest.CaptureFixture[str],
    config: Path,
    rule: str,
    severity: str,
    line: int,
    text: str,
    hint: str,
) -> None:
    status = main(["check", str(config), "--format", "json"])
    every = json.loads(capsys.readouterr().out)
    (found,) = [each for each in every if each["rule"] == rule]

    assert status == int(any(each["severity"] == "error" for each in every))
    assert (found["severity"], found["line"]) == (severity, line)
    assert text in found["message"]
    assert hint in found["hint"]
    for example in found["examples"]:
        dialect = DIALECTS[example["system"]]
        assert parse_subject(example["name"], dialect).levels
        assert example["name"] in found["message"] or rule == "past-limit"

    main(["check", str(config)])
    shown = capsys.readouterr()
    mark = "" if severity == "error" else f"{severity}: "
    assert f"{config}:{line}:" in shown.out + shown.err
    assert f"{mark}{found['message']}; {found['hint']}\n" in shown.out + shown.err

    main(["check", str(config), "--format", "github"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(every)
    assert any(f"title={rule}::" in each and hint in each for each in lines)
