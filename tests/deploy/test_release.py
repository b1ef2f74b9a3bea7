"""One version at every place, and a release that changes all of them."""

from __future__ import annotations

import re
import shutil
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml

import gateway
from deploy.release import CHANGELOG, PLACES, ROOT, ReleaseError, current, prepare

STAGES = ("slim", "jvm", "spark")


def test_the_version_stands_in_one_place_and_the_others_repeat_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    chart = yaml.safe_load((ROOT / "deploy/helm/gateway/Chart.yaml").read_text())

    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "gateway/__init__.py"
    assert current(ROOT) == gateway.__version__ == chart["version"] == chart["appVersion"]
    for place in PLACES:
        assert gateway.__version__ in (ROOT / place).read_text(), place


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for place in (*PLACES, CHANGELOG):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    return tmp_path


def test_a_release_writes_its_version_everywhere_and_its_date(copied: Path) -> None:
    old = current(copied)
    prepare(copied, "97.98.99", date(2026, 11, 24))

    for place in PLACES:
        text = (copied / place).read_text()
        assert old not in text, place
        assert "97.98.99" in text, place
    changes = (copied / CHANGELOG).read_text()
    assert "## Unreleased\n\n## 97.98.99 (2026-11-24)\n" in changes
    assert current(copied) == "97.98.99"


@pytest.mark.parametrize("version", ["0.0.1", "", "1", "v97.0.0", "97.0", "97.0.0-rc1"])
def test_no_other_version_is_released(version: str, copied: Path) -> None:
    with pytest.raises(ReleaseError, match="is no version after"):
        prepare(copied, version, date(2026, 11, 24))

    assert (copied / CHANGELOG).read_text() == (ROOT / CHANGELOG).read_text()


@pytest.mark.parametrize("stage", STAGES)
def test_every_image_names_its_version_and_commit(stage: str) -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    (content,) = re.findall(
        rf"^FROM \S+ AS {stage}$(.*?)(?=^FROM |\Z)", text, re.DOTALL | re.MULTILINE
    )

    assert re.search(r"^ARG VERSION\nARG REVISION$", content, re.MULTILINE)
    assert 'org.opencontainers.image.version="${VERSION}"' in content
    assert 'org.opencontainers.image.revision="${REVISION}"' in content
    script = (ROOT / "deploy" / "images.sh").read_text()
    assert '--build-arg "VERSION=$version" --build-arg "REVISION=$revision"' in script


def test_no_document_promises_a_health_check_that_the_image_has_not() -> None:
    assert "HEALTHCHECK" not in (ROOT / "deploy" / "Dockerfile").read_text()
    for path in (ROOT / "docs").rglob("*.md"):
        assert "HEALTHCHECK" not in path.read_text(), path
