"""Routes in both directions: each direction takes only names that the other one returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import Configuration, load
from gateway.dialects.base import parse_subject
from gateway.dialects.systems.mqtt import MQTT
from gateway.errors import ConfigErrors

CONFIG = """\
endpoints:
  l: {{kind: mqtt, host: a, on_too_long: refuse}}
  r: {{kind: mqtt, host: b, on_too_long: refuse}}
routes:
  x:
    from: {{endpoint: l, pattern: "{pattern}", exclude: [{exclude}]}}
    to: [{{endpoint: r, template: "{template}"}}]
    direction: both
"""


def loaded(folder: Path, pattern: str, template: str, exclude: str = "") -> Configuration:
    file = folder / "both.yaml"
    text = CONFIG.format(pattern=pattern, template=template, exclude=exclude)
    file.write_text(text, encoding="utf-8")
    return load(file)


NOT_CROSSING = [
    pytest.param("a/{rest...}", "b/{rest...}", "a/x/#", ["a/x", "a/x/y"], ["b/x"], id="exclude"),
    pytest.param("a/{k}/{rest...}", "{k}/b/{rest...}", "a/+/x", ["a/k/x"], ["k/b/x"], id="turned"),
    pytest.param("{k}/{rest...}", "b/{k}/{rest...}", "", ["$k/x"], ["b/$k", "b/$k/x"], id="back"),
    pytest.param("a/{k}/{rest...}", "{k}/{rest...}", "", ["a/$k/x"], ["$k"], id="forth"),
    pytest.param("{rest...}", "{rest...}", "", ["$k/x"], ["$k"], id="neither"),
]


@pytest.mark.parametrize(("pattern", "template", "exclude", "here", "there"), NOT_CROSSING)
def test_a_name_that_does_not_cross_in_one_direction_does_not_cross_in_the_other(
    tmp_path: Path, pattern: str, template: str, exclude: str, here: list[str], there: list[str]
) -> None:
    quoted = f'"{exclude}"' if exclude else ""
    configuration = loaded(tmp_path, pattern, template, quoted)

    forward, reverse = configuration.routes
    for route, names in ((forward, here), (reverse, there)):
        assert [route.takes(parse_subject(name, MQTT).levels) for name in names] == [False] * len(
            names
        )
    assert {each.severity for each in examine(configuration)} <= {"note"}


def test_a_shared_subscription_has_no_reverse_route(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, "$share/team/a/{k}", "b/{k}")

    (finding,) = caught.value.findings
    assert (finding.rule, finding.line) == ("direction", 8)
    assert "'$share/team/' is shared in the forward direction only" in finding.reason


def test_other_names_cross_in_both_directions(tmp_path: Path) -> None:
    forward, reverse = loaded(tmp_path, "a/{k}/{rest...}", "{k}/{rest...}", '"a/x/#"').routes

    assert [forward.takes(levels) for levels in (("a", "k"), ("a", "k", "x"), ("a", "x"))] == [
        True, True, False,
    ]  # fmt: skip
    assert [reverse.takes(levels) for levels in (("k",), ("k", "x"), ("x",))] == [True, True, False]


LENGTHS = [
    pytest.param("on_too_long: refuse", "note", id="meant"),
    pytest.param("qos: 1", "warning", id="open"),
]


@pytest.mark.parametrize(("setting", "severity"), LENGTHS)
def test_a_written_on_too_long_makes_a_warning_of_the_reverse_route_a_note(
    tmp_path: Path, setting: str, severity: str
) -> None:
    text = CONFIG.format(pattern="long/{rest...}", template="r/{rest...}", exclude="")
    file = tmp_path / "both.yaml"
    file.write_text(text.replace("host: a, on_too_long: refuse", f"host: a, {setting}"))

    (found,) = [each for each in examine(load(file)) if each.rule == "past-limit"]

    assert (found.severity, "'x.back'" in found.reason) == (severity, True)
    assert ("or 'refuse'" in found.hint) == (severity == "warning")
