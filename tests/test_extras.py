"""The command that installs an extra names the packages in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.extras import install_command, not_installed
from tests.waiting import PATIENCE

CONFIG = """\
endpoints:
  plant: {{kind: {kind}, {settings}}}
  office: {{kind: memory, dialect: mqtt, broker: office}}
routes:
  r:
    from: {{endpoint: plant, pattern: a}}
    to: {{endpoint: office, template: a}}
"""
SETTINGS = {
    "jms": "urls: 'tcp://127.0.0.1:1', classpath: [a.jar]",
    "solace": "url: 'tcp://127.0.0.1:1', vpn: v",
    "nats": "url: 'nats://127.0.0.1:1'",
    "rabbitmq": "url: 'amqp://127.0.0.1:1'",
    "kafka": "servers: '127.0.0.1:1'",
}


@pytest.mark.parametrize(
    ("extra", "package", "command"),
    [
        pytest.param("no-such", "gateway", "pip install '.[no-such]' in the checkout", id="none"),
        pytest.param("dpcontracts", "hypothesis", "pip install 'dpcontracts>=", id="other"),
        pytest.param("x", "no-such-package", "pip install 'no-such-package[x]'", id="absent"),
    ],
)
def test_the_command_has_the_packages_of_the_extra(extra: str, package: str, command: str) -> None:
    assert command in install_command(extra, package)


@pytest.mark.parametrize(
    ("mark", "begin"),
    [
        pytest.param("uv-receipt.toml", "uv pip install --python {prefix} 'pika", id="uv"),
        pytest.param("pipx_metadata.json", "pipx inject gateway 'pika", id="pipx"),
        pytest.param("bin/pip", "pip install 'pika", id="active"),
        pytest.param("bin/python", "{prefix}/bin/python -m pip install 'pika", id="not-active"),
    ],
)
def test_the_command_installs_into_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, begin: str
) -> None:
    prefix = tmp_path / "gateway"
    (prefix / "bin").mkdir(parents=True)
    (prefix / mark).touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "executable", str(prefix / "bin" / "python"))
    monkeypatch.setenv("PATH", str(prefix / "bin"))

    assert install_command("rabbitmq").startswith(begin.format(prefix=prefix))


DRIVERS = {
    "jms": "jpype",
    "solace": "solace",
    "nats": "nats",
    "rabbitmq": "pika",
    "kafka": "confluent_kafka",
}


def test_every_kind_with_an_extra_has_a_driver_here() -> None:
    assert DRIVERS.keys() == {name for name, kind in ENDPOINT_KINDS.items() if kind.extra}


@pytest.mark.parametrize(("name", "driver"), DRIVERS.items())
def test_each_kind_names_its_driver_and_the_command_in_the_same_words(
    tmp_path: Path, name: str, driver: str
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(CONFIG.format(kind=name, settings=SETTINGS[name]))
    code = f"import sys; sys.modules[{driver!r}] = None; from gateway.cli import main; main()"

    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-c", code, "connect", str(config)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert f"plant: {not_installed(driver, name)}" in done.stdout + done.stderr


def test_check_notes_the_packages_that_this_environment_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes on: the gateway may run elsewhere."""
    from importlib import metadata  # noqa: PLC0415  # for this test

    def version(name: str) -> str:
        if name in {"nats-py", "pynacl"}:
            raise metadata.PackageNotFoundError(name)
        return "1"

    config = tmp_path / "gateway.yaml"
    config.write_text(CONFIG.format(kind="nats", settings=SETTINGS["nats"]))
    monkeypatch.setattr(metadata, "version", version)

    assert main(["check", str(config)]) == 0

    lines = [line for line in capsys.readouterr().out.splitlines() if "not installed here" in line]
    command = install_command("nats")
    (line,) = lines
    assert line.partition("note: ")[2] == (
        "not installed here: nats-py, pynacl; `gateway run` needs this for `kind: nats`; where it"
        f" runs: {command}"
    )
