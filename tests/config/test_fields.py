"""Findings about templates, header rules and picks with fields of the message."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import ConfigErrors

CONFIG = """\
endpoints:
  plant: {{kind: {source}}}
  closed: {{kind: memory, dialect: ems}}
  open: {{kind: memory, dialect: ems, allow: ["A.>", "$TMP$.>"]}}
routes:
  a:
    from: {{endpoint: plant, pattern: "plant/{{m}}"}}
    to: {{endpoint: {endpoint}, template: "{template}"{more}}}
    {route}
"""
PLANT = "memory"
QUEUES = "jms, dialect: ibm, classpath: [], factory: x.Y, urls: [tcp://localhost]"


def faults(folder: Path, **parts: str) -> list[tuple[str, str, int]]:
    """Return rule, text and column of each error."""
    filled = {"source": PLANT, "endpoint": "open", "more": "", "route": "", **parts}
    file = folder / "fields.yaml"
    file.write_text(CONFIG.format(**filled))
    try:
        load(file)
    except ConfigErrors as found:
        return [(each.rule, str(each), each.column) for each in found.findings]
    return []


WRONG = [
    pytest.param(
        {"endpoint": "closed"}, "A.{property.s}", "open-template", "pick any name", id="open"
    ),
    pytest.param({}, "$TMP$.{property.s}", "open-template", "gets a reply", id="inbox"),
    pytest.param(
        {"more": ', headers: {set: {reply_to: "{property.s}"}}'},
        "A.{m}", "open-template", "where replies go", id="reply-to",
    ),
    pytest.param({"route": "direction: both"}, "A.{property.s}", "direction", "tells", id="both"),
    pytest.param(
        {"route": "heartbeat: plant/beat"},
        "A.{property.s}", "heartbeat", "a heartbeat has no {property.s}", id="heartbeat",
    ),
    pytest.param(
        {"route": "heartbeat: plant/beat", "more": ', headers: {set: {a: "{property.t}"}}'},
        "A.{m}", "heartbeat", "a heartbeat has no {property.t}", id="heartbeat-header",
    ),
    pytest.param({}, "A.{payload.s}", "retained-field", "no payload", id="retained"),
    pytest.param({}, "A.{payload.s|default:x}", "retained-field", "", id="retained-default"),
    pytest.param(
        {"more": ', headers: {set: {a: "{payload.t}"}}'},
        "A.{m}", "retained-field", "", id="retained-header",
    ),
    pytest.param({}, "A.{property.s|default:a.b}", "template", "has '.'", id="default"),
    pytest.param({}, "A.{prop.s}", "template", "{property.name}", id="misspelled"),
    pytest.param(
        {"more": ", payload: {pick: a..b}"}, "A.{m}", "payload", "a key is empty", id="empty-key"
    ),
    pytest.param(
        {"more": ", payload: {pick: a, form: json}"}, "A.{m}", "payload", "leave", id="pick-form"
    ),
    pytest.param(
        {"more": ', payload: {pick: a, set: {b: "{n}"}}'}, "A.{m}", "unknown-capture", "", id="set"
    ),
    pytest.param(
        {"more": ", payload: {pick: a}, encoding: x"}, "A.{m}", "encoding", "", id="pick-encoding"
    ),
    pytest.param(
        {"more": ", payload: {pick: a}", "route": "heartbeat: plant/beat"},
        "A.{m}", "heartbeat", "no JSON", id="heartbeat-pick",
    ),
    pytest.param(
        {"more": ', payload: {set: {b: "{payload.c}"}}'},
        "A.{m}", "retained-field", "", id="retained-set",
    ),
    pytest.param(
        {"more": ', headers: {set: {b: "{property.c|default:a.b}"}}'},
        "A.{m}", "template", "has '.'", id="default-set",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "template", "rule", "text"), WRONG)
def test_a_field_that_cannot_be_is_an_error_at_its_place(
    tmp_path: Path, parts: dict[str, str], template: str, rule: str, text: str
) -> None:
    ((found, shown, column),) = faults(tmp_path, template=template, **parts)

    assert found == rule
    assert text in shown
    assert column > 1


def test_all_faults_of_a_template_are_found_at_once(tmp_path: Path) -> None:
    template = "A.{payload.s|default:a.b}.{no field}.{oops}"

    found = faults(tmp_path, template=template, endpoint="closed")

    assert sorted(rule for rule, *_ in found) == [
        "open-template", "retained-field", "template", "template", "unknown-capture",
    ]  # fmt: skip


RIGHT = [
    pytest.param({}, "A.{property.s}", id="property"),
    pytest.param({"route": "retained: ignore"}, "A.{payload.s}", id="payload"),
    pytest.param({"source": QUEUES}, "A.{payload.s}", id="nothing-retained"),
    pytest.param(
        {"route": "{heartbeat: plant/beat, retained: ignore}"[1:-1].replace(", ", "\n    ")},
        "A.{property.s|default:x}.{payload.t|default:y}", id="heartbeat",
    ),
    pytest.param({"more": ', headers: {set: {a: "{payload.t|default:none}"}}'}, "A.{m}", id="set"),
    pytest.param({"more": ', headers: {set: {a: "{property.t}"}}'}, "A.{m}", id="set-property"),
    pytest.param({"more": ", payload: {pick: [a, b.c]}"}, "A.{m}", id="pick"),
    pytest.param({"more": ', payload: {set: {b: "{property.c}-{m}"}}'}, "A.{m}", id="payload-set"),
    pytest.param({"more": ", payload: {form: json}"}, "A.{m}", id="form"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "template"), RIGHT)
def test_fields_with_what_they_need(tmp_path: Path, parts: dict[str, str], template: str) -> None:
    assert faults(tmp_path, template=template, **parts) == []


def test_a_target_of_a_field_is_lossy_by_declaration(tmp_path: Path) -> None:
    file = tmp_path / "fields.yaml"
    file.write_text(CONFIG.format(
        source=PLANT, endpoint="open", template="A.{property.s}", more="", route="",
    ))  # fmt: skip

    (route,) = load(file).routes

    assert route.targets[0].lossy
