"""The man page: it is up to date, and its readers have nothing to warn about."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from docs import man_page
from gateway.cli import all_commands
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]


def test_every_command_has_a_section_with_its_options() -> None:
    page = man_page.page()

    for name in all_commands():
        assert f".Ss gateway {name}" in page
    assert ".It Fl \\-accept\\-gaps\nExit status 0 despite gaps of a source.\n" in page
    assert ".Op Fl \\-log\\-level Cm debug | info | warning | error\n" in page


def test_a_new_date_alone_writes_no_new_page() -> None:
    old = man_page.PATH.read_text(encoding="utf-8")

    assert man_page.outdated() is None
    assert old.startswith(".Dd ")


def test_the_wheel_installs_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]

    assert shared == {str(man_page.PATH.relative_to(ROOT)): "share/man/man1/gateway.1"}


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_no_warning() -> None:
    found = subprocess.run(  # noqa: S603  # a program of the tests
        [shutil.which("mandoc") or "mandoc", "-Tlint", man_page.PATH],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert (found.stdout, found.returncode) == ("", 0)


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_renders_the_page_without_a_warning() -> None:
    found = subprocess.run(  # noqa: S603  # a program of the tests
        [shutil.which("man") or "man", "--warnings", "-l", man_page.PATH],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
        env={"MANWIDTH": "80", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "MANPAGER": "cat"},
    )  # fmt: skip

    assert found.stderr == ""
    assert "gateway reconcile" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80
