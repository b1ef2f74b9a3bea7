"""The commands `check`, `explain`, `preflight`, `schema` and `test`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.terminal.text import print_words

CONFIG = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  ems: {kind: memory, dialect: ems}
routes:
  there:
    from: {endpoint: plant, pattern: "plant/{site}/{rest...}", exclude: ["plant/test/#"]}
    to: {endpoint: ems, template: "SENSORS.{site}.{rest...}"}
  back:
    from: {endpoint: ems, pattern: "SENSORS.{rest...}"}
    to: {endpoint: plant, template: "historian/{rest...}"}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG)
    return file


def test_explain_shows_captures_limits_and_the_reverse_route(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "plant/hall/v1.2", "--config", str(config), "--from", "plant"]) == 0

    assert (
        capsys.readouterr().out
        == """\
there: from plant, plant/{site}/{rest...}
  {site} = 'hall'
  {rest} = 'v1.2'
  -> ems (ems) SENSORS.hall.v1%2E2
     uses 19 of 246 characters (249 less 3 for 3 levels), \
3 of 64 levels, 7 of 127 characters in one level
     from there back makes it historian/hall/v1.2 at plant
"""
    )


def test_explain_shows_the_value_of_a_wildcard_and_only_the_likely_routes(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONFIG.replace("plant/{site}/{rest...}", "plant/+/{rest...}")
    config.write_text(text.replace("SENSORS.{site}.", "SENSORS.{1}."))

    assert main(["explain", "plant/hall/v1.2", "--config", str(config)]) == 0

    out = capsys.readouterr().out
    assert "  {1} = 'hall'\n  {rest} = 'v1.2'\n" in out
    assert out.endswith("1 other route does not take it; --all shows why\n")
    main(["explain", "plant/hall/v1.2", "--config", str(config), "--all"])
    assert "\nback: from ems, SENSORS.{rest...}\n  not taken: " in capsys.readouterr().out
    assert main(["explain", "other/v1.2", "--config", str(config)]) == 1
    out = capsys.readouterr().out
    assert "there: from plant" in out
    assert "back: from ems" not in out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "other/x",
            "not taken: the pattern does not match: level 1 is 'other', the pattern has 'plant'\n",
        ),
        ("Plant/x", "level 1 is 'Plant', the pattern has 'plant' (differs in case)\n"),
        ("plant/test/x", "not taken: excluded by 'plant/test/#'"),
        ("plant/" + "x" * 200, "refused, rule level-too-long"),
        ("plant/+", "mqtt has no such name"),
    ],
)
def test_explain_gives_the_reason_when_no_target_gets_a_name(
    config: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    assert main(["explain", name, "--config", str(config), "--from", "plant"]) == 1

    out = capsys.readouterr().out
    assert reason in out
    assert out.endswith("no target gets this name\n")


def test_explain_proposes_a_route_and_proves_it_beside_the_others(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "--config", str(config), "--from", "plant", "--to", "ems"]
    assert main([*words, "shop/7/a", "--wanted", "SHOP.7.a"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[:3] == [
        "routes:",
        "  proposed:",
        '    from: {endpoint: plant, pattern: "shop/{rest...}"}',
    ]
    assert "shop/7/a -> SHOP.7.a, and back" in first

    assert main([*words, "shop/7", "--wanted", "SHOP.7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pattern"] == "shop/{level2}"
    assert main([*words[:5], "shop/7", "--wanted", "SHOP.7"]) == 2
    assert "needs --from ENDPOINT and --to ENDPOINT, two of: plant, ems" in capsys.readouterr().err
    assert main([*words, "plant/7/a", "--wanted", "SENSORS.7.a"]) == 0
    assert capsys.readouterr().out == "there makes SENSORS.7.a of plant/7/a already\n"


def test_explain_prints_json(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "plant/hall/x", "--config", str(config), "--json"])

    (there, back) = json.loads(capsys.readouterr().out)
    assert there["made"][0]["name"] == "SENSORS.hall.x"
    assert back["why_not"].endswith("level 1 is 'plant/hall/x', the pattern has 'SENSORS'")


@pytest.fixture
def names(tmp_path: Path) -> Path:
    file = tmp_path / "names.txt"
    long = "/".join(["a-long-level"] * 25)
    file.write_bytes(f"a/b\na//b\n\n{long}\n".encode() + b"caf\xe9/x\n")
    return file


def test_preflight_lists_the_names_that_do_not_fit(
    names: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preflight", str(names), "--from", "mqtt", "--to", "ems,smf"]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{names}:4: ems: ")
    assert "is 324 characters, limit 228 (rule too-long)" in lines[0]
    assert lines[-2:] == [
        "ems: 2 fit; refused: 1 surrogate, 1 too-long",
        "smf: 2 fit; refused: 1 surrogate, 1 too-long",
    ]


def test_preflight_knows_brokers_with_limits_of_their_own(
    names: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names.write_text("a/b\na/v1.2\na/b/c/d/e/f/g/h/i\n$SYS/x\n")

    assert main(["preflight", str(names), "--from", "mqtt", "--to", "aws-iot,nats-mqtt-2.9"]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert "aws-iot: 2 fit; refused: 1 reserved, 1 too-deep" in lines
    assert "nats-mqtt-2.9: 2 fit; refused: 1 forbidden-character, 1 reserved" in lines


def test_preflight_shows_shortened_names(names: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["preflight", str(names), "--from", "mqtt", "--to", "ems", "--shorten", "--json"])

    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["line"] for answer in answers] == [1, 2, 4, 5]
    assert answers[2]["shortened"] is True
    assert len(answers[2]["name"]) <= 249


def test_preflight_of_fitting_names_gives_exit_status_0(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("a/b\n")

    assert main(["preflight", str(file), "--from", "mqtt", "--to", "smf"]) == 0


def test_a_missing_file_gives_exit_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", "absent.txt", "--from", "mqtt", "--to", "ems"]) == 2
    assert "absent.txt: cannot read the names" in capsys.readouterr().err


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "gateway configuration"


def test_check_prints_the_guarantee_of_every_route(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(config)]) == 0

    out = capsys.readouterr().out
    assert "there: plant (mqtt) plant/{site}/{rest...}\n  -> ems (ems) SENSORS." in out
    assert out.endswith(f"{config}: 1 warning, 1 note\n")
    assert main(["check", str(config), "--strict"]) == 1


def test_check_prints_json_and_github_annotations(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG.replace('{rest...}"}\n  back', '{rset...}"}\n  back'))

    assert main(["check", str(config), "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert (finding["line"], finding["rule"]) == (7, "unknown-capture")
    assert main(["check", str(config), "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith(f"::error file={config},line=7,col=")


CYCLE = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  ems: {kind: memory, dialect: ems}
routes:
  there:
    from: {endpoint: plant, pattern: "a/{x}"}
    to: {endpoint: ems, template: "A.{x}"}
  back:
    from: {endpoint: ems, pattern: "A.{x}"}
    to: {endpoint: plant, template: "a/{x}"}
"""


def test_a_finding_in_json_has_its_example_names(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CYCLE)

    assert main(["check", str(config), "--format", "json"]) == 1
    found = {each["rule"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["cycle"]["examples"] == [
        {"name": "a/x", "endpoint": "plant", "system": "mqtt"},
        {"name": "A.x", "endpoint": "ems", "system": "ems"},
        {"name": "a/x", "endpoint": "plant", "system": "mqtt"},
    ]
    assert set(found["cycle"]) == {
        "path", "line", "column", "rule", "severity", "message", "hint", "examples"
    }  # fmt: skip


def test_a_github_annotation_is_one_line_for_any_file_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a,b:c%d"
    folder.mkdir()
    (folder / "gateway.yaml").write_text(CYCLE)
    main(["check", str(folder), "--format", "json"])
    count = len(json.loads(capsys.readouterr().out))
    main(["check", str(folder), "--format", "github"])

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == count
    assert "a%2Cb%3Ac%25d/gateway.yaml,line=" in lines[0]


TESTS = """\
tests:
  there:
    given: {endpoint: plant, name: plant/hall/v1.2, payload: "21"}
    expect: [{endpoint: ems, name: SENSORS.hall.v1%2E2, payload: "21"}]
  no route takes tests:
    given: {endpoint: plant, name: plant/test/x}
    expect: []
  too long:
    given: {endpoint: plant, name: "plant/hall/LONG"}
    expect: [{endpoint: ems, refused: level-too-long}]
""".replace("LONG", "x" * 200)


def test_tests_of_a_mapping_pass(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(CONFIG + TESTS)

    assert main(["test", str(config)]) == 0
    assert capsys.readouterr().out.endswith("3 tests passed\n")


def test_a_failed_test_shows_the_unexpected_copies(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG + TESTS.replace("SENSORS.hall", "SENSORS.hell"))

    assert main(["test", str(config)]) == 1
    out = capsys.readouterr().out
    assert f"{config}:13:5: test 'there' failed" in out or "test 'there' failed" in out
    assert "missing:    ems SENSORS.hell.v1%2E2" in out
    assert "unexpected: ems SENSORS.hall.v1%2E2" in out


def test_a_configuration_without_tests_gives_exit_status_2(config: Path) -> None:
    assert main(["test", str(config)]) == 2


HEADER_CONFIG = """\
endpoints:
  from: {kind: memory, dialect: ems}
  to: {kind: memory, dialect: mqtt}
routes:
  r:
    from: {endpoint: from, pattern: "a.{x}"}
    to:
      endpoint: to
      template: "a/{x}"
      headers: {set: {ttl: 30, content_type: text/plain}, rename: {urgency: priority}}
tests:
  t:
    given: {endpoint: from, name: a.1, GIVEN}
    expect: [{endpoint: to, name: a/1, EXPECTED}]
"""


def run_header_test(file: Path, given: str, expected: str) -> int:
    text = HEADER_CONFIG.replace("GIVEN", given).replace("EXPECTED", expected)
    file.write_text(text)
    return main(["test", str(file)])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("priority: 3", "priority: 3, ttl: 30, content_type: text/plain"),
        ("properties: {urgency: 7}", "priority: 7, properties: {}"),
        ("correlation_id: c-1, ttl: 5", "correlation_id: c-1, ttl: 30"),
        ("properties: {JMSPriority: 1}", "priority: 1, properties: {}"),
        ("priority: 1", "properties: {JMSPriority: 1}"),
        ("properties: {JMSCorrelationID: c-1}", "properties: {JMSCorrelationID: c-1}"),
    ],
)
def test_a_test_states_header_fields(tmp_path: Path, given: str, expected: str) -> None:
    assert run_header_test(tmp_path / "gateway.yaml", given, expected) == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("priority: 3", "priority: 4"),
        ("priority: 3", "properties: {JMSPriority: 4}"),
        ("ttl: 5", "ttl: 5"),
        ("priority: 3", "content_type: text/html"),
        ("correlation_id: c-1", "correlation_id: c-2"),
    ],
)
def test_another_header_field_fails_a_test(
    tmp_path: Path, given: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_header_test(tmp_path / "gateway.yaml", given, expected) == 1

    assert "ttl=30.0 content_type='text/plain'" in capsys.readouterr().out


def test_an_illegal_jms_header_names_its_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run_header_test(tmp_path / "gateway.yaml", "properties: {JMSPriority: 12}", "ttl: 1") == 2
    )

    error = "gateway: test 't': JMSPriority is a number from 0 to 9\n"
    assert capsys.readouterr().err == error


def test_explain_needs_no_secret_when_it_is_told_so(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = 'mqtt, password: "${env:ABSENT_PASSWORD}", username: u}'
    config.write_text(
        CONFIG.replace("plant: {kind: memory, dialect: mqtt}", "plant: {kind: " + needs)
    )
    words = ["explain", "plant/hall/x", "--config", str(config), "--from", "plant"]

    assert main(words) == 1
    assert main([*words, "--without-secrets"]) == 0

    assert "-> ems (ems) SENSORS.hall.x" in capsys.readouterr().out


def test_a_template_without_quotes_gets_a_hint(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG.replace('"SENSORS.{site}.{rest...}"', "{site}"))

    assert main(["check", str(config)]) == 1

    assert "write it in quotes: YAML reads {x} as a mapping" in capsys.readouterr().out


def test_the_address_of_another_kind_of_endpoint_gets_a_hint(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG.replace("kind: memory, dialect: ems", "kind: solace, host: broker"))

    assert main(["check", str(config)]) == 1

    assert "unknown field 'host'; did you mean 'url'?" in capsys.readouterr().out


@pytest.mark.parametrize(("number", "end"), [(1, "1 test passed\n"), (2, "2 tests passed\n")])
def test_the_number_of_tests_has_its_word(
    number: int, end: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = "".join(
        f"  {each}: {{given: {{endpoint: ems, name: x}}, expect: []}}\n" for each in range(number)
    )
    config.write_text(f"{CONFIG}tests:\n{tests}")

    assert main(["test", str(config)]) == 0
    assert capsys.readouterr().out == end


def test_errors_are_printed_where_notes_are_and_counted(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG.replace("dialect: ems", "dialect: emss"))

    assert main(["check", str(config)]) == 1

    shown = capsys.readouterr()
    assert not shown.err
    assert shown.out.endswith(f"did you mean 'ems'?\n{config}: 1 error\n")


def test_an_exact_guarantee_has_its_condition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "endpoints: {a: {kind: mqtt, qos: 2}, b: {kind: mqtt, qos: 2, port: 1884}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: b, template: x}}}\n"
    )

    assert main(["check", str(config)]) == 0
    assert (
        "     exactly once while both connections last, and at least once across a break\n"
        in capsys.readouterr().out
    )


def test_a_terminal_breaks_findings_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    words = "gateway.yaml:3:17: unknown kind 'mqqt'; did you mean 'mqtt'? " + "x" * 40

    print_words(words)

    lines = capsys.readouterr().out.splitlines()
    assert " ".join(" ".join(lines).split()) == words
    assert all(len(each) <= 30 or len(each.split()) == 1 for each in lines)
    assert lines[1].startswith("    ")


NOTED = """\
endpoints:
  plant: {kind: mqtt, host: plant, username: a, password: "${env:P}"}
  two: {kind: mqtt, host: two, username: a, password: "${env:P}"}
  out: {kind: mqtt, host: out, username: a, password: "${env:P}"}
routes:
  r:
    from: {endpoint: plant, pattern: "a/{x}"}
    to: {endpoint: out, template: "b/{x}"}
"""


def test_many_notes_of_one_rule_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(NOTED)
    check = ["check", str(file), "--without-secrets"]

    assert main(check) == 0
    first, more, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{file}:2:")
    assert more == f"{file}: 2 more notes of the rule no-tls, at 3, 4; see --all"
    assert last == f"{file}: 3 notes; without the values of references"

    assert main([*check, "--all"]) == 0
    assert capsys.readouterr().out.count("note: ") == 3
    file.write_text(NOTED.replace("  two: {", "  # two: {"))
    assert main(check) == 0
    assert capsys.readouterr().out.count("note: ") == 2
