"""Lists of dialects in a configuration: `dialect: [ems, rv]`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.cli import main
from gateway.config.load import Configuration, load
from gateway.errors import ConfigErrors, TranslationError
from gateway.model.subject import Subject
from tests.schema_validation import configuration_validator

CONFIG = """\
endpoints:
  core: {{kind: jms, dialect: {dialect}, classpath: [x.jar]}}
  plant: {{kind: mqtt}}
routes:
  prices:
    from: {{endpoint: core, pattern: "{pattern}"}}
    to: {{endpoint: plant, template: "prices/{{rest...}}"}}
  orders:
    from: {{endpoint: plant, pattern: "in/{{rest...}}"}}
    to: {{endpoint: core, template: "{template}"}}
"""


def read(
    folder: Path, dialect: str, pattern: str = "p.{rest...}", template: str = "{rest...}"
) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(dialect=dialect, pattern=pattern, template=template))
    return file


def faults(file: Path) -> list[tuple[int, str]]:
    with pytest.raises(ConfigErrors) as caught:
        load(file)
    return [(each.line, each.rule) for each in caught.value.findings]


def send(configuration: Configuration, *levels: str) -> str:
    (target,) = configuration.routes[1].targets
    return target.name_for(Subject(("in", *levels)), {"rest": levels})


@pytest.mark.parametrize(
    "dialect",
    [
        pytest.param("ems", id="word"),
        pytest.param("[ems]", id="list-of-one"),
        pytest.param("[ems, rv]", id="rendezvous"),
        pytest.param("[ems, smartsockets]", id="smartsockets"),
        pytest.param("[ems, rv, smartsockets]", id="both"),
        pytest.param("rv", id="rendezvous-alone"),
    ],
)
def test_the_first_dialect_spells(tmp_path: Path, dialect: str) -> None:
    file = read(tmp_path, dialect)
    validator = configuration_validator()

    assert validator.is_valid(yaml.safe_load(file.read_text()))
    assert send(load(file), "a", "b") == "a.b"


@pytest.mark.parametrize(
    ("dialect", "rule"),
    [
        pytest.param("[]", "value", id="none"),
        pytest.param("[rv, ems]", "value", id="ems-comes-first"),
        pytest.param("[ems, ems]", "value", id="twice"),
        pytest.param("[ems, ibm]", "value", id="not-joined-by-ems"),
        pytest.param("smartsockets", "value", id="without-ems"),
        pytest.param("[ems, rw]", "choice", id="unknown"),
    ],
)
def test_a_list_that_no_server_joins_is_refused(tmp_path: Path, dialect: str, rule: str) -> None:
    assert faults(read(tmp_path, dialect)) == [(2, rule)]


def test_a_pattern_and_a_template_are_checked_by_both(tmp_path: Path) -> None:
    both = {"pattern": "_x.{rest...}", "template": "_y.{rest...}"}

    assert len(load(read(tmp_path, "ems", **both)).routes) == 2
    assert faults(read(tmp_path, "[ems, rv]", **both)) == [
        (6, "rv-forbidden-first"),
        (10, "rv-forbidden-first"),
    ]


def test_a_name_is_refused_with_the_rule_of_the_other_system(tmp_path: Path) -> None:
    with pytest.raises(TranslationError, match=r"rv does not take '_foo\.x'") as caught:
        send(load(read(tmp_path, "[ems, rv]")), "_foo", "x")

    assert (caught.value.rule, caught.value.target) == ("rv-forbidden-first", "ems")


def test_check_reports_names_that_publishers_could_send(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", str(read(tmp_path, "[ems, rv]"))])

    assert "'in/_' is refused (rv-forbidden-first)" in capsys.readouterr().out
