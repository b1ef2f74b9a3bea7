"""The settings of a route in both directions that its reverse route applies."""

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
    pytest.param("", ", thin: {seconds: 9}", "`thin`", id="thin"),
    pytest.param(', selector: "a = 1"', "", "`selector`", id="selector"),
    pytest.param(
        ', selector: "a = 1"', ", payload: map, headers: {drop: [a]}",
        "`selector`, `drop` of `headers`, `payload: map`", id="all",
    ),
    pytest.param(
        ', exclude: ["orders/private"]', ", on_unmappable: reject, lossy: false", "", id="none"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "lacking"), ONE_WAY)
def test_a_setting_that_the_reverse_route_lacks_is_a_warning(
    tmp_path: Path, source: str, target: str, lacking: str
) -> None:
    found = examine(read(tmp_path, source, target))
    reported = [each for each in found if each.rule == "not-on-the-way-back"]

    assert [(each.severity, each.line, each.hint) for each in reported] == [
        ("warning", 6, "write two routes, each with the settings of its direction")
    ] * bool(lacking)
    for each in reported:
        assert each.reason == f"route 'orders': the reverse route does not apply {lacking}"


def test_the_reverse_route_undoes_renames(tmp_path: Path) -> None:
    forward, reverse = read(tmp_path, "", ", headers: {rename: {a: b, b: a, c: d}}").routes
    before = Headers(properties={"a": 1, "b": 2, "c": 3})
    after = forward.targets[0].rules.apply(before, 0)

    assert dict(after.properties) == {"a": 2, "b": 1, "d": 3}
    assert reverse.targets[0].rules.apply(after, 0) == before


def test_the_reverse_route_excludes_what_the_route_excludes(tmp_path: Path) -> None:
    configuration = read(tmp_path, ', exclude: ["orders/private"]')
    _, reverse = configuration.routes

    assert reverse.takes(("ORDERS", "x"))
    assert not reverse.takes(("ORDERS", "private"))
    assert {each.rule for each in examine(configuration)} & {"not-inverse"} == set()
