"""Rows of other packages: one that is broken is named, and the others are there."""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.registry import PluginWarning, Registry

GROUP = "gateway.of-a-test"
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Fruit:
    name: str
    weight: int = 1


def check(fruit: Fruit) -> None:
    if fruit.weight < 0:
        raise ValueError(f"its weight is {fruit.weight}")


@pytest.fixture
def fruits() -> Registry[Fruit]:
    return Registry(GROUP, Fruit, [Fruit("apple")], check)


@dataclass(frozen=True)
class Packages:
    """A folder of installed packages."""

    folder: Path

    def add(self, package: str, entry: str, code: str) -> None:
        """Install a package with one module and one entry point, whose name is `entry`."""
        module = f"fruit_of_a_test_{next(NUMBERS)}"
        (self.folder / f"{module}.py").write_text(f"from {__name__} import Fruit\n{code}\n")
        info = self.folder / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry} = {module}:ROW\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Fruit.__module__])
    return Packages(tmp_path)


def test_a_row_of_a_package_is_found_by_name(packages: Packages, fruits: Registry[Fruit]) -> None:
    packages.add("pear-package", "pear", "ROW = Fruit('pear')")

    assert fruits["pear"].name == "pear"
    assert [*fruits] == ["apple", "pear"]
    assert (fruits.package_of("pear"), fruits.package_of("apple")) == ("pear-package", "gateway")


def test_own_rows_are_found_without_a_look_at_packages(
    fruits: Registry[Fruit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: pytest.fail("asked"))

    assert "apple" in fruits
    assert next(iter(fruits.values())) == fruits["apple"]


BROKEN = [
    pytest.param("import no_such_driver", "ModuleNotFoundError: No module named", id="import"),
    pytest.param("raise SystemExit(3)", "SystemExit: 3", id="exit"),
    pytest.param("raise RuntimeError", "RuntimeError: RuntimeError", id="no-text"),
    pytest.param("ROOW = 1", "AttributeError: module", id="no-such-row"),
    pytest.param("ROW = Fruit", "TypeError: is no Fruit", id="no-row"),
    pytest.param("ROW = Fruit('plum')", "the entry point has the row of 'plum'", id="other-name"),
    pytest.param("ROW = Fruit('bad', -1)", "ValueError: its weight is -1", id="unreadable"),
]


@pytest.mark.parametrize(("code", "reason"), BROKEN)
def test_a_broken_package_is_named_and_the_others_are_there(
    packages: Packages, fruits: Registry[Fruit], code: str, reason: str
) -> None:
    packages.add("bad-package", "bad", code)
    packages.add("pear-package", "pear", "ROW = Fruit('pear')")

    with pytest.warns(PluginWarning, match="package 'bad-package'") as warned:
        assert [*fruits] == ["apple", "pear"]

    assert len(warned) == 1
    assert reason in fruits.fault_of("bad")
    assert fruits.fault_of("bad").endswith("; repair the package, or remove it")
    assert "bad" not in fruits
    assert fruits.fault_of("pear") == fruits.fault_of("fig") == ""


def test_the_gateways_own_row_stays(packages: Packages, fruits: Registry[Fruit]) -> None:
    packages.add("thief", "apple", "ROW = Fruit('apple', 7)")

    with pytest.warns(PluginWarning, match="package 'thief'"):
        assert len(fruits) == 1
    assert fruits["apple"].weight == 1
    assert "'gateway' has a row of this name" in fruits.fault_of("apple")


def test_one_of_two_packages_has_a_name(packages: Packages, fruits: Registry[Fruit]) -> None:
    names = ["one", "two"]
    for name in names:
        packages.add(name, "pear", "ROW = Fruit('pear')")

    with pytest.warns(PluginWarning):
        owner = fruits.package_of("pear") if "pear" in fruits else ""
    names.remove(owner)
    assert f"package {names[0]!r}" in fruits.fault_of("pear")
    assert f"{owner!r} has a row of this name" in fruits.fault_of("pear")


def test_a_row_is_registered_once(fruits: Registry[Fruit]) -> None:
    fruits.register(Fruit("fig"))

    with pytest.raises(GatewayError, match="fig: is already registered"):
        fruits.register(Fruit("fig"))
    fruits.unregister("fig")
    assert "fig" not in fruits
