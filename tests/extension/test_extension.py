"""A package of another author adds a dialect and an endpoint, and the gateway is as it was.

pip installs the package from a wheel into a folder of its own. Every command runs with this folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import pytest
import yaml

from gateway.dialects.registry import DIALECTS
from gateway.endpoints.kind import EndpointKind
from gateway.endpoints.settings.base import EndpointSettings
from tests.brokers.running import Process
from tests.schema_validation import validator
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parent / "package"
DOCUMENT = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
SUITES = re.findall(r"^    pytest (-p tests.extension.rows .*)$", DOCUMENT, re.MULTILINE)
CONFIG = """\
gateway: {name: test}
endpoints:
  source: {kind: filebus, path: source.db}
  target: {kind: filebus, path: target.db}
  plant: {kind: memory, dialect: mqtt}
routes:
  orders:
    from: {endpoint: source, pattern: "orders:{site}:{rest...}"}
    to: {endpoint: target, template: "sent:{site}:{rest...}"}
  plant:
    from: {endpoint: plant, pattern: "plant/{rest...}"}
    to: {endpoint: target, template: "plant:{rest...}"}
web: {port: 0}
"""


def wheel(folder: Path) -> Path:
    """Build the wheel of the package: its module and its metadata, without a build backend."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items())
        for group, found in project["entry-points"].items()
    )
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.write(PACKAGE / "file_bus.py", "file_bus.py")
        head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", head + "Requires-Dist: gateway\n")
        archive.writestr(f"{info}/entry_points.txt", points)
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the installed package."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(  # noqa: S603  # pip, and no network
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
         "--target", folder, wheel(tmp_path_factory.mktemp("wheel"))],
        check=True, timeout=PATIENCE,
    )  # fmt: skip
    return folder


@pytest.fixture
def environment(installed: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{installed}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG)
    return file


def gateway(environment: dict[str, str], *words: object) -> tuple[int, str]:
    """Run a command; return its exit code and all that it has said."""
    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "gateway", *map(str, words)], check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout


def completed(environment: dict[str, str], line: str, folder: Path) -> str:
    """Return the completions of a line; a shell shows nothing else."""
    answer = folder / "answer"
    shell = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    shell |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    assert gateway(environment | shell)[1] == ""
    return answer.read_text().strip()


@pytest.mark.parametrize("words", SUITES, ids=["laws", "conformance"])
def test_the_suites_of_the_document_pass(environment: dict[str, str], words: str) -> None:
    done = subprocess.run(  # noqa: S603  # pytest
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *shlex.split(words)],
        cwd=ROOT, env={"HYPOTHESIS_PROFILE": "short", **os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert (found := re.search(r"(\d+) passed", done.stdout)), done.stdout
    assert int(found[1]) >= 20


COMMANDS = [
    (["translate", "a/b?c", "--from", "mqtt", "--to", "filebus"], 0, "a:b%3Fc"),
    (["translate", "orders:??", "--from", "filebus", "--to", "mqtt", "--pattern"], 0, "orders/#"),
    (["match", "orders:?", "orders:eu", "--system", "filebus"], 0, ""),
    (["match", "orders:?", "orders", "--system", "filebus"], 1, ""),
    (["translate", "--help"], 0, f"{[*DIALECTS][-1]}, filebus"),
]


@pytest.mark.parametrize(("words", "code", "shown"), COMMANDS)
def test_commands_about_names_know_the_dialect(
    environment: dict[str, str], words: list[str], code: int, shown: str
) -> None:
    found, text = gateway(environment, *words)

    assert found == code, text
    assert shown in re.sub(r"\s+", " ", text)


def test_check_and_explain_know_both(environment: dict[str, str], config: Path) -> None:
    code, text = gateway(environment, "check", config)
    assert (code, "target (filebus) sent:{site}:{rest...}" in text) == (0, True), text

    code, text = gateway(environment, "explain", "plant/x y/z?", "--config", config, "--json")
    assert code == 0, text
    found = {each["route"]: each for each in json.loads(text)}
    assert found["plant"]["made"][0]["name"] == "plant:x y:z%3F"


def test_check_knows_the_settings(environment: dict[str, str], config: Path) -> None:
    config.write_text(CONFIG.replace("path: source.db", "paht: source.db"))

    code, text = gateway(environment, "check", config)

    assert code == 1
    assert "unknown field 'paht'; did you mean 'path'?" in text


def test_the_schema_has_the_settings(environment: dict[str, str]) -> None:
    schema = json.loads(gateway(environment, "schema")[1])

    assert validator(schema).is_valid(yaml.safe_load(CONFIG))
    wrong = yaml.safe_load(CONFIG.replace("path: source.db", "path: []"))
    assert not validator(schema).is_valid(wrong)


def test_completion_offers_the_dialect(environment: dict[str, str], tmp_path: Path) -> None:
    assert completed(environment, "gateway translate a --from fil", tmp_path) == "filebus"


def test_a_message_passes_and_the_page_knows_the_dialect(
    environment: dict[str, str], config: Path
) -> None:
    process = Process(config, environment)
    try:
        process.connected()
        with closing(sqlite3.connect(config.parent / "target.db")) as target:
            with target:
                target.execute("INSERT INTO queues VALUES ('test', 'sent:??')")
            with closing(sqlite3.connect(config.parent / "source.db")) as source, source:
                source.execute(
                    "INSERT INTO messages SELECT NULL, queue, 'orders:eu:1', 'x', 0 FROM queues"
                )
                source.execute("UPDATE messages SET payload = CAST(payload AS BLOB)")
            until(lambda: bool(target.execute("SELECT * FROM messages").fetchall()))
            (found,) = target.execute("SELECT queue, name, payload FROM messages")
        (serving,) = [each for each in process.lines if "http://" in str(each)]
        (url,) = re.findall(r"http://127.0.0.1:\d+", str(serving))
        with urlopen(url, timeout=PATIENCE) as page:  # noqa: S310  # the gateway's own
            text = page.read()
        with urlopen(  # noqa: S310
            f"{url}/api/explain?system=filebus&kind=name&text=orders:eu:1", timeout=PATIENCE
        ) as answer:
            explained = json.load(answer)
    finally:
        code = process.end()

    assert found == ("test", "sent:eu:1", b"x")
    assert b'<option value="filebus">filebus</option>' in text
    assert [each["route"] for each in explained["routes"]] == ["orders"]
    assert code == 0


def test_the_document_has_every_fact_of_a_row_and_every_member_of_settings() -> None:
    rows = re.findall(r"^\| (`.*?) \|", DOCUMENT, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    settings = {each for each in vars(EndpointSettings) if not each.startswith("_")}
    common = {"name", "rate", "backoff_min", "backoff_max", "servers"}

    assert {each.name for each in fields(EndpointKind)} | settings - common <= named


BROKEN = "raise ImportError('no driver')\n"


def test_a_broken_package_is_named_where_it_is_used(
    environment: dict[str, str], installed: Path, config: Path, tmp_path: Path
) -> None:
    (tmp_path / "file_bus.py").write_text(BROKEN)
    broken = environment | {"PYTHONPATH": f"{tmp_path}:{installed}:{ROOT}"}

    code, text = gateway(broken, "check", config)
    assert code == 1
    assert "unknown kind 'filebus'; package 'file-bus': gateway.endpoints: filebus" in text
    assert "ImportError: no driver; repair the package, or remove it" in text

    code, text = gateway(broken, "translate", "a", "--from", "mqtt", "--to", "filebus")
    assert code == 2
    assert "unknown system 'filebus'; package 'file-bus'" in text


def test_a_broken_package_does_not_stop_the_others(
    environment: dict[str, str], installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "file_bus.py").write_text(BROKEN)
    broken = environment | {"PYTHONPATH": f"{tmp_path}:{installed}:{ROOT}"}

    assert completed(broken, "gateway translate a --from smart", tmp_path) == "smartsockets"
    assert gateway(broken, "--version")[1].count("\n") == 1
    code, text = gateway(broken, "translate", "a/b", "--from", "mqtt", "--to", "ems")
    warning, name = text.splitlines()
    assert (code, name) == (0, "a.b")
    assert warning.startswith("gateway: warning: package 'file-bus': gateway.dialects: filebus")


def test_a_running_gateway_logs_a_broken_package(
    environment: dict[str, str], installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "file_bus.py").write_text(BROKEN)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "endpoints: {a: {kind: memory, dialect: mqtt}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}\n"
    )
    broken = environment | {"PYTHONPATH": f"{tmp_path}:{installed}:{ROOT}"}

    process = Process(config, broken)
    process.wait_for("running")
    assert process.end() == 0

    logged = [each for each in process.lines if "package 'file-bus'" in str(each["message"])]
    assert {each["level"] for each in logged} == {"warning"}


DRIVERS = [
    pytest.param("raise RuntimeError('no library')", "RuntimeError: no library", id="import"),
    pytest.param("import no_such_library", "'no_such_library' is not installed", id="absent"),
    pytest.param("", "AttributeError: module 'file_bus_driver' has no attribute", id="function"),
]


@pytest.mark.parametrize(("code", "reason"), DRIVERS)
def test_a_driver_that_cannot_be_loaded_is_named_with_its_package(
    environment: dict[str, str], config: Path, tmp_path: Path, code: str, reason: str
) -> None:
    row = (PACKAGE / "file_bus.py").read_text().replace('"file_bus")', '"file_bus_driver")')
    (tmp_path / "file_bus.py").write_text(row)
    (tmp_path / "file_bus_driver.py").write_text(code)
    path = f"{tmp_path}:{environment['PYTHONPATH']}"

    found, text = gateway(environment | {"PYTHONPATH": path}, "run", config)

    assert found == 2, text
    assert reason in text
    assert "'file-bus'" in text
    assert "Traceback" not in text
