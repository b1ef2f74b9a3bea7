"""What a route in both directions does on its way back, and what it says that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import Configuration, load
from gateway.model.message import Headers

CONFIG = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
  ems: {{kind: memory, dialect: ems}}
routes:
  orders:
    direction: both
    from: {{endpoint: plant, pattern: "orders/{{id}}"{source}}}
    to: {{endpoint: ems, template: "ORDERS.{{id}}"{target}}}
"""


def read(folder: Path, source: str = "", target: str = "") -> Configuration:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(source=source, target=target))
    return load(file)


ONE_WAY = [
    pytest.param("", ", headers: {set: {a: b}}", "`set` of `headers`", id="set"),
    pytest.param(
        "", ", headers: {map: {a: {b: c}}, drop: [d]}", "`map` and `drop` of `headers`", id="two"
    ),
    pytest.param("", ", headers: {rename: {a: priority}}", "", id="property-to-field"),
    pytest.param("", ", headers: {rename: {priority: a}}", "`rename` of `headers`", id="field"),
    pytest.param("", ", headers: {rename: {a: mode}}", "`rename` of `headers`", id="mode"),
    pytest.param("", ", headers: {rename: {a: property.mode}}", "", id="property-of-that-name"),
    pytest.param("", ", payload: text", "`payload: text`", id="payload"),
    pytest.param(', selector: "a = 1"', "", "`selector`", id="selector"),
    pytest.param(
        ', selector: "a = 1"', ", payload: map, headers: {drop: [a]}",
        "`selector`, `drop` of `headers`, `payload: map`", id="all",
    ),
    pytest.param(', exclude: ["orders/private"]', ", escape: reject, lossy: false", "", id="none"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "lacking"), ONE_WAY)
def test_what_the_way_back_does_not_do_is_a_warning(
    tmp_path: Path, source: str, target: str, lacking: str
) -> None:
    found = examine(read(tmp_path, source, target))
    told = [each for each in found if each.rule == "not-on-the-way-back"]

    assert [(each.severity, each.line, each.hint) for each in told] == [
        ("warning", 6, "write two routes, each with what holds for its direction")
    ] * bool(lacking)
    for each in told:
        assert each.reason == f"route 'orders': the way back goes without {lacking}"


def test_renames_are_undone_on_the_way_back(tmp_path: Path) -> None:
    there, back = read(tmp_path, "", ", headers: {rename: {a: b, b: a, c: d}}").routes
    before = Headers(properties={"a": 1, "b": 2, "c": 3})
    after = there.targets[0].rules.apply(before, 0)

    assert dict(after.properties) == {"a": 2, "b": 1, "d": 3}
    assert back.targets[0].rules.apply(after, 0) == before


def test_what_is_excluded_is_excluded_on_the_way_back(tmp_path: Path) -> None:
    configuration = read(tmp_path, ', exclude: ["orders/private"]')
    _, back = configuration.routes

    assert back.takes(("ORDERS", "x"))
    assert not back.takes(("ORDERS", "private"))
    assert {each.rule for each in examine(configuration)} & {"not-inverse"} == set()
