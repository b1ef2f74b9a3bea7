from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.errors import ConfigErrors

CONFIG = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
  erp: {{kind: memory, dialect: ems}}
routes:
  r:
    from: {{endpoint: {source}, pattern: "{pattern}"}}
    to: {{endpoint: {target}, template: "{template}"}}
"""


def config(folder: Path, **texts: str) -> Path:
    path = folder / "gateway.yaml"
    path.write_text(CONFIG.format(**texts))
    return path


@pytest.mark.parametrize(
    ("source", "pattern", "target", "template", "expected"),
    [
        ("plant", "a/{x}", "erp", "A/{x}", (7, "'A/{x}' is one element in ems", "'A.{x}'")),
        ("erp", "A.{x}", "plant", "line.{x}", (7, "'line.{x}' is one level in mqtt", "'line/{x}'")),
        ("plant", "a.>", "erp", "A", (6, "'a.>' is one level in mqtt", "'a/#'")),
        ("plant", "a/{x}", "erp", "A.{x}", None),
        ("plant", "v1.2/{x}", "erp", "A.{x}", None),
    ],
)
def test_the_separator_of_another_system_is_a_warning_with_the_text_to_write(
    tmp_path: Path,
    source: str,
    pattern: str,
    target: str,
    template: str,
    expected: tuple[int, str, str] | None,
) -> None:
    path = config(tmp_path, source=source, pattern=pattern, target=target, template=template)
    found = [each for each in examine(load(path)) if each.rule == "other-separator"]

    if expected is None:
        assert found == []
        return
    (warning,) = found
    line, text, better = expected
    assert (warning.line, warning.severity) == (line, "warning")
    assert text in warning.reason
    assert warning.hint == f"write {better}, unless that is intended"


@pytest.mark.parametrize(
    ("pattern", "template", "better"),
    [("a/{x}/{rest...}", "A/{x}/{rest...}", "A.{x}.{rest...}"), ("a.{x}", "A.{x}", "a/{x}")],
)
def test_the_hint_of_an_illegal_text_is_the_text_to_write(
    tmp_path: Path, pattern: str, template: str, better: str
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(config(tmp_path, source="plant", pattern=pattern, target="erp", template=template))

    (finding,) = caught.value.findings
    assert f"write {better!r}" in finding.hint
