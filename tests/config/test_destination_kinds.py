"""Kinds of destinations: only a mapping's own text chooses a queue, never a captured level."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.errors import TranslationError
from gateway.model.message import Headers
from gateway.model.subject import Subject
from gateway.routing.name_rules import to_routes, to_rules
from gateway.routing.route import Route, Target

CONFIG = """\
endpoints:
  plant: {{kind: mqtt}}
  core: {{kind: jms, dialect: {dialect}, classpath: [x.jar]}}
  other: {{kind: jms, urls: ["tcp://other"], classpath: [x.jar]}}
  office: {{kind: solace}}
  office2: {{kind: solace, url: "tcp://other:55555"}}
routes:
  orders:
    from: {{endpoint: {source}, pattern: "{pattern}"}}
    to: {{endpoint: {target}{template}{headers}}}
"""


def target_of(
    folder: Path,
    *ends: str,
    pattern: str = "{a...}",
    template: str = "",
    headers: str = "",
    dialect: str = "ems",
) -> tuple[Route, Target]:
    """Return the route between two endpoints of `CONFIG` and its target."""
    file = folder / "gateway.yaml"
    source, target = ends or ("plant", "core")
    text = CONFIG.format(
        source=source,
        target=target,
        pattern=pattern,
        template=f", template: '{template}'" if template else "",
        headers=f", headers: {headers}" if headers else "",
        dialect=dialect,
    )
    file.write_text(text)
    (route,) = load(file).routes
    return route, route.targets[0]


def name_for(route: Route, *levels: str) -> str:
    (target,) = route.targets
    return target.name_for(Subject(levels), route.source.capture(levels))


@pytest.mark.parametrize("dialect", ["ems", "[ems, rv]", "rv", "smf"])
@pytest.mark.parametrize("kind", ["queue", "topic", "tempqueue", "temptopic"])
@pytest.mark.parametrize("template", ["", "{a...}"], ids=["no-template", "template"])
def test_a_captured_level_chooses_no_kind(
    tmp_path: Path, dialect: str, kind: str, template: str
) -> None:
    route, _ = target_of(tmp_path, template=template, dialect=dialect)

    with pytest.raises(TranslationError, match=f"begin with '{kind}:'") as caught:
        name_for(route, f"{kind}:PAY", "x")

    assert caught.value.rule == "destination-kind"
    assert "PAY" in name_for(route, "PAY", f"{kind}:x")  # at another level it is plain text


@pytest.mark.parametrize(
    ("pattern", "template", "levels", "made"),
    [
        pytest.param("{a}", "queue:{a}", ("x",), "queue:x", id="template"),
        pytest.param("{a}", "queue:{a}", ("topic:x",), "queue:topic:x", id="twice"),
        pytest.param("{a}", "topic:{a}", ("queue:x",), "topic:queue:x", id="a-name-like-a-queue"),
        pytest.param("queue:P/{a}", "", ("queue:P", "x"), "queue:P.x", id="pattern"),
    ],
)
def test_a_mapping_chooses_a_kind(
    tmp_path: Path, pattern: str, template: str, levels: tuple[str, ...], made: str
) -> None:
    route, _ = target_of(tmp_path, pattern=pattern, template=template)
    (recorded,) = to_routes(json.loads(json.dumps(to_rules([route]))))

    assert name_for(route, *levels) == made
    assert name_for(recorded, *levels) == made


def test_recorded_rules_refuse_the_same_names(tmp_path: Path) -> None:
    route, _ = target_of(tmp_path)
    (recorded,) = to_routes(json.loads(json.dumps(to_rules([route]))))

    with pytest.raises(TranslationError, match="queue:"):
        name_for(recorded, "queue:PAY")


@pytest.mark.parametrize(
    ("ends", "reply", "made"),
    [
        pytest.param(("plant", "core"), "queue:PAY", None, id="mqtt-to-jms"),
        pytest.param(("plant", "core"), "PAY", "PAY", id="a-topic"),
        pytest.param(("core", "other"), "queue:PAY", "queue:PAY", id="jms-to-jms"),
        pytest.param(("plant", "office"), "%2523P2P/QUE/PAY", None, id="mqtt-to-solace"),
        pytest.param(("plant", "office"), "%2523P2P/v:a/b", "#P2P/v:a/b", id="an-inbox"),
        pytest.param(("office", "office2"), "#P2P/QUE/P", "#P2P/QUE/P", id="solace-to-solace"),
    ],
)
def test_a_publisher_chooses_a_reply_queue_only_where_its_system_has_them(
    tmp_path: Path, ends: tuple[str, str], reply: str, made: str | None
) -> None:
    pattern = "p.{a...}" if ends[0] == "core" else "p/{a...}"
    route, target = target_of(tmp_path, *ends, pattern=pattern)

    if made is None:
        with pytest.raises(TranslationError, match="only a template's own text"):
            target.reply_name(route.dialect, reply)
    else:
        assert target.reply_name(route.dialect, reply) == made


@pytest.mark.parametrize(
    ("headers", "captured", "made"),
    [
        pytest.param('{set: {reply_to: "queue:A"}}', "x", "queue:A", id="set"),
        pytest.param('{set: {reply_to: "queue:{1}"}}', "x", "queue:x", id="set-with-a-capture"),
        pytest.param('{set: {reply_to: "{1}"}}', "queue:x", None, id="set-to-a-capture"),
        pytest.param('{map: {reply_to: {r: "queue:A"}}}', "x", "queue:A", id="mapped"),
        pytest.param('{map: {reply_to: {q: "queue:A"}}}', "x", "r", id="not-mapped"),
    ],
)
def test_a_header_rule_chooses_a_reply_queue(
    tmp_path: Path, headers: str, captured: str, made: str | None
) -> None:
    route, target = target_of(tmp_path, pattern="+", template="A.{1}", headers=headers)
    rules = target.rules.bind({"1": (captured,)})
    reply = rules.apply(Headers(reply_to="r"), 0).reply_to
    assert reply is not None

    if made is None:
        with pytest.raises(TranslationError, match="only a template's own text"):
            target.reply_name(route.dialect, reply)
    else:
        assert target.reply_name(route.dialect, reply) == made


def test_check_says_that_such_names_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target_of(tmp_path, template="{a...}")
    main(["check", str(tmp_path / "gateway.yaml")])

    assert "'topic:' is refused (destination-kind)" in capsys.readouterr().out
