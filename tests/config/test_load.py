from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gateway.config.load import Configuration, load
from gateway.dialects.base import parse_subject
from gateway.errors import ConfigError, ConfigErrors, LimitError, TranslationError
from gateway.model.subject import Subject
from gateway.routing.route import Route
from gateway.translate.names import OnTooLong, OnUnmappable

ENDPOINTS = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  ems: {kind: memory, dialect: ems}
"""
ROUTE = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{region}/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{region}.{rest...}"}
"""


def read(folder: Path, text: str, **environment: str) -> Configuration:
    file = folder / "gateway.yaml"
    file.write_text(text)
    return load(file, environment)


def findings(folder: Path, text: str, **environment: str) -> list[ConfigError]:
    with pytest.raises(ConfigErrors) as caught:
        read(folder, text, **environment)
    return caught.value.findings


def test_a_good_file_becomes_endpoints_and_routes(tmp_path: Path) -> None:
    configuration = read(tmp_path, ENDPOINTS + ROUTE)

    (route,) = configuration.routes
    assert (route.name, route.endpoint, route.source.subscription) == (
        "orders",
        "plant",
        "orders/+/#",
    )
    assert [target.endpoint for target in route.targets] == ["ems"]
    assert configuration.archive is None
    assert configuration.gateway.name == "gateway"


@pytest.mark.parametrize(
    ("plant", "ems", "reason"),
    [
        ("ems", "", "goes on itself"),
        ("plant", "", "goes on itself"),
        ("old", "old", "'plant' goes on as 'old' already"),
    ],
)
def test_an_earlier_name_whose_memory_is_taken_is_a_finding(
    tmp_path: Path, plant: str, ems: str, reason: str
) -> None:
    text = f"""\
endpoints:
  plant: {{kind: memory, dialect: mqtt, was: {plant}}}
  ems: {{kind: memory, dialect: ems, was: "{ems}"}}
"""
    (finding,) = findings(tmp_path, text + ROUTE)

    assert reason in finding.reason
    assert finding.column > 1


def test_a_folder_is_read_as_one_configuration(tmp_path: Path) -> None:
    (tmp_path / "10-endpoints.yaml").write_text(ENDPOINTS)
    (tmp_path / "20-routes.yml").write_text(ROUTE)
    (tmp_path / "notes.txt").write_text("not: [read")

    assert [route.name for route in load(tmp_path).routes] == ["orders"]


FAULTS = [
    pytest.param(
        ENDPOINTS + "routs:\n", 4, 1, "unknown-section", "did you mean 'routes'?", id="section"
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqqt}\n", 2, 17, "choice", "did you mean 'mqtt'?", id="kind"
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, hots: x}\n", 2, 23, "unknown-field",
        "did you mean 'host'?", id="field",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, port: 99999}\n", 2, 29, "range", "", id="range"
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, port: many}\n", 2, 29, "type", "", id="not-a-number"
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, port: 1, port: 2}\n", 2, 32, "duplicate-key", "",
        id="twice",
    ),
    pytest.param(
        ENDPOINTS + ROUTE + "    <<: base\n", 8, 9, "bad-merge", "write an alias", id="merged-text"
    ),
    pytest.param(
        ENDPOINTS + ROUTE + "    <<: [{}, 5]\n", 8, 14, "bad-merge", "", id="merged-number"
    ),
    pytest.param(
        ENDPOINTS + ROUTE + "    <<: {retained: forward, retained: ignore}\n", 8, 29,
        "duplicate-key", "",
        id="twice-in-a-merge",
    ),
    pytest.param("<<:\n" + ENDPOINTS + ROUTE, 1, 4, "bad-merge", "", id="merged-nothing"),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, host: !secret broker}\n", 2, 29, "unknown-tag",
        "${env:NAME}", id="tag",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, host: !!binary aG9zdA==}\n", 2, 29, "unknown-tag", "",
        id="binary",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, password: hunter2}\n", 2, 33, "plain-secret",
        "write ${env:NAME} or ${file:/path}", id="plain-secret",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, password: '${env:PASS}'}\n", 2, 33, "missing-secret",
        "set the variable before the gateway starts", id="missing-secret",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, client_id: 'x-${HOSTNAME}'}\n", 2, 34, "bad-reference",
        "write ${env:NAME}", id="no-source",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, host: '${env:HOME}${ENV:X}'}\n", 2, 29, "bad-reference",
        "write ${env:NAME}", id="unknown-source",
    ),
    pytest.param(
        "endpoints:\n  plant: {kind: mqtt, host: '${env:X'}\n", 2, 29, "bad-reference", "",
        id="open-reference",
    ),
    pytest.param(
        "endpoints:\n\tplant: {}\n", 2, 1, "syntax", "indent with spaces, not tabs", id="tab"
    ),
    pytest.param("[1, 2]\n", 1, 1, "not-a-mapping", "", id="a-list"),
    pytest.param("", 1, 1, "empty", "write endpoints and routes", id="empty"),
    pytest.param(
        ENDPOINTS + "routes:\n  r:\n    from: {endpoint: plant, pattern: a}\n", 5, 3,
        "missing-field", "one target", id="no-target",
    ),
    pytest.param(
        ENDPOINTS + ROUTE.replace("endpoint: ems", "endpoint: emms"), 7, 20, "unknown-endpoint",
        "did you mean 'ems'?", id="unknown-endpoint",
    ),
    pytest.param(
        ENDPOINTS + ROUTE.replace("{region}.{rest", "{regoin}.{rest"), 7, 35, "unknown-capture", "",
        id="unknown-capture",
    ),
    pytest.param(
        ENDPOINTS + ROUTE.replace("orders/{region}", "orders+/{region}"), 6, 38,
        "wildcard-in-element", "", id="illegal-pattern",
    ),
    pytest.param(ENDPOINTS + ROUTE.replace("orders:", "or ders:"), 5, 3, "bad-name", "", id="name"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "rule", "hint"), FAULTS)
def test_a_finding_has_its_location(
    tmp_path: Path, text: str, line: int, column: int, rule: str, hint: str
) -> None:
    found = findings(tmp_path, text)[0]

    assert (found.line, found.column, found.rule) == (line, column, rule)
    assert hint in found.hint
    assert str(found).startswith(f"{tmp_path / 'gateway.yaml'}:{line}:{column}: ")


def test_all_findings_come_at_once_in_file_order(tmp_path: Path) -> None:
    text = """\
endpoints:
  plant: {kind: mqtt, port: 70000, qos: 3}
  ems: {kind: memory, dialect: emms}
routes:
  a:
    from: {endpoint: nowhere, pattern: x}
    to: {endpoint: ems}
    colour: red
  b:
    from: {endpoint: plant, pattern: "a/#/b"}
    to: {endpoint: elsewhere}
"""
    found = findings(tmp_path, text)

    locations = [(each.line, each.column) for each in found]
    assert locations == sorted(locations)
    assert {"range", "choice", "unknown-field", "unknown-endpoint"} <= {each.rule for each in found}


def test_a_secret_is_resolved_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    text = ENDPOINTS.replace(
        "kind: memory, dialect: mqtt",
        f"kind: mqtt, username: '${{env:WHO}}', password: '${{file:{file}}}'",
    )

    plant = read(tmp_path, text + ROUTE, WHO="me").endpoints["plant"].settings

    assert getattr(plant, "username", None) == "me"
    assert getattr(plant, "password", None) == "hunter2"
    assert "hunter2" not in repr(plant)


@pytest.mark.parametrize("text", ["12:30", "010", "-007", "1:02:03.5", "NO", "on", "Off", "yes"])
@pytest.mark.parametrize("rule", ["set: {p: %s}", "map: {p: {x: %s}}"])
def test_a_header_value_that_versions_of_yaml_read_differently_is_ambiguous(
    tmp_path: Path, rule: str, text: str
) -> None:
    line = f"    to: {{endpoint: ems, headers: {{{rule % text}}}}}\n"
    file = ENDPOINTS + ROUTE[: ROUTE.index("    to:")] + line

    (found,) = findings(tmp_path, file)

    assert (found.rule, found.line, found.column) == ("ambiguous", 7, line.index(text) + 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'12:30'", "12:30"), ("'010'", "010"), ("'NO'", "NO"), ("0", 0), ("-5", -5), ("0.5", 0.5),
        ("False", False), ("true", True), ("1_000", 1_000), ("0x10", 16), ("a:b", "a:b"),
        ("2020-01-01T10:00", "2020-01-01T10:00"),
    ],
)  # fmt: skip
def test_a_header_value_has_its_type(tmp_path: Path, text: str, value: object) -> None:
    line = f"    to: {{endpoint: ems, headers: {{set: {{p: {text}}}}}}}\n"
    (route,) = read(tmp_path, ENDPOINTS + ROUTE[: ROUTE.index("    to:")] + line).routes

    ((_, made),) = route.targets[0].rules.sets
    assert (made, type(made)) == (value, type(value))


def test_merged_mappings_and_anchors_work(tmp_path: Path) -> None:
    text = """\
endpoints:
  a: &broker {kind: mqtt, host: example, port: 1884}
  b: {<<: *broker, port: 1885}
routes:
  r:
    from: {endpoint: a, pattern: x}
    to: {endpoint: b}
"""
    endpoints = read(tmp_path, text).endpoints

    assert [getattr(endpoints[name].settings, "port", 0) for name in "ab"] == [1884, 1885]


def test_an_alias_bomb_is_a_finding(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert findings(tmp_path, "\n".join(lines))[0].rule == "too-large"


def test_a_deep_file_is_a_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, "a: " + "[" * 50_000)[0].rule in {"syntax", "too-large"}


def test_a_huge_file_is_a_finding_and_is_not_read_completely(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 30)

    with pytest.raises(ConfigErrors, match="larger than"):
        load(file)


def test_a_missing_file_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match="cannot read the file: No such file"):
        load(tmp_path / "absent.yaml")


def test_a_folder_without_yaml_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"has no \.yaml file"):
        load(tmp_path)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"a: \x00", os.urandom(4096)], ids=["utf", "nul", "noise"]
)
def test_bytes_that_are_not_text_are_a_finding(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_bytes(data)

    with pytest.raises(ConfigErrors):
        load(file)


def test_an_endpoint_tightens_the_limits_of_its_system(tmp_path: Path) -> None:
    text = ENDPOINTS.replace("dialect: ems}", "dialect: ems, limits: {levels: 3, characters: 20}}")
    (route,) = read(tmp_path, text + ROUTE).routes

    with pytest.raises(LimitError, match="is 4 levels, limit 3"):
        route.targets[0].name_for(*subject_and_captures(route, "orders/emea/a/b"))


def test_names_that_the_endpoint_does_not_allow_are_refused(tmp_path: Path) -> None:
    text = ENDPOINTS.replace("dialect: ems}", 'dialect: ems, allow: ["ORDERS.emea.>"]}')
    (route,) = read(tmp_path, text + ROUTE).routes

    assert (
        route.targets[0].name_for(*subject_and_captures(route, "orders/emea/a")) == "ORDERS.emea.a"
    )
    with pytest.raises(TranslationError, match="outside of what the endpoint allows"):
        route.targets[0].name_for(*subject_and_captures(route, "orders/apac/a"))


@pytest.mark.parametrize(
    ("allow", "target", "name", "made"),
    [
        ("E.*.new", "on_too_long: shorten", "orders/" + "x" * 130, ""),  # `E.~...`, cut
        ("E.>", "on_too_long: shorten", "orders/" + "x" * 130, "E.~"),
        ("E.a-b.new", "on_unmappable: replace", "orders/a.b", "E.a-b.new"),
        ("E.a%2Eb.new", "on_unmappable: replace", "orders/a.b", ""),
        ("E.a%2Eb.new", "on_unmappable: escape", "orders/a.b", "E.a%2Eb.new"),
    ],
)
def test_the_name_that_is_sent_must_be_allowed(
    tmp_path: Path, allow: str, target: str, name: str, made: str
) -> None:
    text = ENDPOINTS.replace("dialect: ems}", f'dialect: ems, allow: ["{allow}"]}}') + (
        "routes:\n  r:\n    from: {endpoint: plant, pattern: 'orders/{x}'}\n"
        f"    to: {{endpoint: ems, template: 'E.{{x}}.new', {target}}}\n"
    )
    (route,) = read(tmp_path, text).routes
    subject, captures = subject_and_captures(route, name)

    if made:
        assert route.targets[0].name_for(subject, captures).startswith(made)
        return
    with pytest.raises(TranslationError, match="outside of what the endpoint allows"):
        route.targets[0].name_for(subject, captures)


def subject_and_captures(route: Route, name: str) -> tuple[Subject, dict[str, tuple[str, ...]]]:
    subject = parse_subject(name, route.dialect)
    return subject, route.source.capture(subject.levels)


def test_files_include_others(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "endpoints.yaml").write_text(ENDPOINTS)

    configuration = read(tmp_path, "include: [parts/endpoints.yaml]\n" + ROUTE)

    assert set(configuration.endpoints) == {"plant", "ems"}


def test_a_recursive_or_missing_include_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("include: gateway.yaml\n" + ENDPOINTS)

    found = findings(tmp_path, "include: [other.yaml, absent.yaml]\n" + ROUTE)

    assert {(each.rule, Path(each.path).name) for each in found} == {
        ("recursive-include", "other.yaml"),
        ("unreadable", "gateway.yaml"),
    }


def test_defaults_fill_in_absent_settings_of_a_route(tmp_path: Path) -> None:
    defaults = """\
defaults:
  route: {archive_payload: true}
  from: {exclude: ["orders/test/#"]}
  to: {on_too_long: shorten}
"""
    (route,) = read(tmp_path, ENDPOINTS + ROUTE + defaults).routes

    assert route.archive_payload
    assert [exclude.text for exclude in route.excludes] == ["orders/test/#"]
    assert route.targets[0].renderer.on_too_long is OnTooLong.SHORTEN


@pytest.mark.parametrize(
    ("defaults", "more", "place"),
    [
        ("{route: {retained: forward}}", "    to: {endpoint: plant}\n", (8, 5)),
        ("{route: {retained: forward}}", "    ? [to]\n    : {endpoint: plant}\n", (8, 7)),
        ("{route: {retained: forward, retained: ignore}}", "", (8, 39)),
        ("{to: {lossy: true}, to: {lossy: false}}", "", (8, 31)),
    ],
)
def test_a_repeated_key_is_found_beside_defaults(
    tmp_path: Path, defaults: str, more: str, place: tuple[int, int]
) -> None:
    found = findings(tmp_path, f"{ENDPOINTS}{ROUTE}{more}defaults: {defaults}\n")

    assert [(each.line, each.column) for each in found] == [place]


def test_an_endpoint_has_defaults_for_its_targets(tmp_path: Path) -> None:
    settings = "on_too_long: shorten, on_unmappable: reject"
    text = ENDPOINTS.replace("dialect: ems}", f"dialect: ems, {settings}}}")
    (route,) = read(tmp_path, text + ROUTE).routes

    assert route.targets[0].renderer.on_too_long is OnTooLong.SHORTEN
    assert route.targets[0].renderer.on_unmappable is OnUnmappable.REJECT


def test_an_unknown_default_is_a_finding(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, ENDPOINTS + ROUTE + "defaults: {too: {}}\n")

    assert found.rule == "unknown-field"


def test_a_name_becomes_several_tags(tmp_path: Path) -> None:
    text = ENDPOINTS.replace("dialect: ems", "dialect: yami4")
    several = ROUTE.replace('"ORDERS.{region}.{rest...}"', '["orders.{region}", "all.{rest...}"]')
    (route,) = read(tmp_path, text + several).routes

    made = route.targets[0].name_for(*subject_and_captures(route, "orders/emea/a,b/c"))

    assert made == "orders.emea,all.a%2Cb.c"


def test_several_templates_need_tag_lists(tmp_path: Path) -> None:
    several = ROUTE.replace('"ORDERS.{region}.{rest...}"', '["A.{region}", "B.{rest...}"]')

    (found,) = findings(tmp_path, ENDPOINTS + several)

    assert found.rule == "no-tags"


@pytest.mark.parametrize(
    ("section", "rule", "text"),
    [
        ("dead_letters: {endpoint: emss}", "unknown-endpoint", "did you mean 'ems'?"),
        ("dead_letters: {endpoint: ems, name: a..b}", "empty-element", "'a..b'"),
        ("dead_letters: {byts: 100000}", "unknown-field", "did you mean 'bytes'?"),
    ],
    ids=["endpoint", "name", "field"],
)
def test_the_target_of_dead_letters_is_checked(
    tmp_path: Path, section: str, rule: str, text: str
) -> None:
    spool = "spool: {path: spool}\n"
    (finding,) = findings(tmp_path, f"{ENDPOINTS}{ROUTE}{spool}{section}\n")

    assert finding.rule == rule
    assert text in str(finding)


def test_dead_letters_need_a_spool(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, f"{ENDPOINTS}{ROUTE}dead_letters: {{bytes: 100000}}\n")

    assert finding.rule == "no-spool"
    assert finding.hint.startswith("add a section `spool` with a `path`, or an `endpoint`")


def test_a_heartbeat_name_must_match_the_route(tmp_path: Path) -> None:
    route = ROUTE.replace("    from:", "    heartbeat: beat\n    from:")
    (finding,) = findings(tmp_path, ENDPOINTS + route)

    assert (finding.rule, finding.line) == ("heartbeat", 6)
    assert "'beat' does not match the pattern of the route" in finding.reason


def test_a_shared_subscription_cannot_have_a_heartbeat(tmp_path: Path) -> None:
    route = ROUTE.replace("    from:", "    heartbeat: orders/beat\n    from:")
    route = route.replace('"orders/', '"$share/team/orders/')
    (finding,) = findings(tmp_path, ENDPOINTS + route)

    assert (finding.rule, finding.line) == ("heartbeat", 6)
    assert "'$share/team/' lets another gateway take the heartbeats" in finding.reason


def test_an_observed_subscription_is_a_pattern_of_the_target(tmp_path: Path) -> None:
    route = ROUTE.replace('{rest...}"}\n', '{rest...}", observe: "A..b"}\n', 2)
    route = route.replace(', observe: "A..b"}', "}", 1)
    found = findings(tmp_path, ENDPOINTS + route)

    assert [finding.rule for finding in found] == ["empty-element"]


ALLOWED_NONE = ENDPOINTS.replace("dialect: ems}", "dialect: ems, allow: []}")
NO_ENTRY = "the list is empty; write an entry"
SAYS_NONE = f"{NO_ENTRY}, or remove the key"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ENDPOINTS + re.sub("from: .*", "from: []", ROUTE), f"6:11: {NO_ENTRY}"),
        (ENDPOINTS + re.sub("to: .*", "to: []", ROUTE), f"7:9: {NO_ENTRY}"),
        (ENDPOINTS + re.sub("template: .*", "template: []}", ROUTE), f"7:35: {SAYS_NONE}"),
        (ALLOWED_NONE + ROUTE, f"3:44: {SAYS_NONE}"),
        (f"{ENDPOINTS}routes: {{}}\n", "4:9: no routes; add a route"),
        (ENDPOINTS, "1:1: no routes; add a section `routes:`"),
        ("endpoints: {}\nroutes: {}\n", "2:9: no routes; add a route"),
    ],
    ids=["from", "to", "template", "allow", "routes", "no-routes", "nothing"],
)
def test_what_needs_an_entry_is_refused_where_it_is_empty(
    tmp_path: Path, text: str, found: str
) -> None:
    """An empty list of sources was a route less, and an empty `allow` allowed every name."""
    assert list(map(str, findings(tmp_path, text))) == [f"{tmp_path / 'gateway.yaml'}:{found}"]


@pytest.mark.parametrize("more", ["exclude: []", "exclude: [], tags: {}"])
def test_an_empty_list_that_means_what_an_absent_one_does_is_legal(
    tmp_path: Path, more: str
) -> None:
    text = ENDPOINTS + ROUTE.replace('{rest...}"}', f'{{rest...}}", {more}}}', 1)

    assert read(tmp_path, text).routes == read(tmp_path, ENDPOINTS + ROUTE).routes
