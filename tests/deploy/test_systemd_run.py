"""The units under a running systemd, in a container in which it is the first process."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.conftest import Image
from tests.deploy.container import Container, started
from tests.deploy.engine import Engine
from tests.deploy.test_systemd import MAX_EXPOSURE, SERVICES
from tests.waiting import until

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
PRIVILEGES = (  # of systemd, not of the units; CAP_SYS_RESOURCE is not everywhere to be had
    "--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--security-opt", "seccomp=unconfined",
    "--security-opt", "apparmor=unconfined", "--env", "container=docker",
    "--tmpfs", "/run", "--tmpfs", "/run/lock", "--tmpfs", "/tmp",  # noqa: S108  # mounts
)  # fmt: skip
CONFIG = """\
gateway: {name: unit}
endpoints:
  here: {kind: mqtt, host: 127.0.0.1, backoff_min: 0.05, backoff_max: 0.2}
routes:
  relay:
    from: {endpoint: here, pattern: "src/{rest...}"}
    to: {endpoint: here, template: "dst/{rest...}"}
archive: {path: /var/lib/gateway/archive}
spool: {path: /var/lib/gateway/spool}
web: {token: "${file:/run/credentials/gateway.service/web-token}"}
"""
INSTALL = """\
set -e
ln -sfn gateway-0.2.0 /opt/gateway
cd /deploy/systemd
install -D -m 0644 gateway.sysusers /etc/sysusers.d/gateway.conf
systemd-sysusers
install -D -m 0644 gateway.tmpfiles /etc/tmpfiles.d/gateway.conf
systemd-tmpfiles --create
install -m 0644 gateway*.service gateway*.timer /etc/systemd/system/
install -d -m 0755 /etc/gateway
echo 0123456789abcdef0123456789abcdef > /etc/gateway.secrets/web-token
install -d /etc/systemd/system/gateway.service.d
printf '[Service]\\nLoadCredential=web-token:/etc/gateway.secrets/web-token\\n' \
    > /etc/systemd/system/gateway.service.d/secrets.conf
systemctl daemon-reload
systemd-run --unit broker mosquitto -p 1883
"""
NIGHT_TIMEOUT = 1800  # seconds; two starts of Spark on a busy machine
Machine = Container


@pytest.fixture(scope="module")
def machine(engine: Engine, gateway_image: Image) -> Iterator[Machine]:
    """A machine with the gateway installed, and not started."""
    image = engine.build(
        Path(__file__).parent / "systemd", "machine", "gateway-test-systemd", gateway_image("spark")
    )
    cgroups = Path("/sys/fs/cgroup/systemd")  # of version 1; version 2 has a namespace
    mounts = ("--volume", f"{cgroups}:{cgroups}") if cgroups.exists() else ("--cgroupns", "private")
    options = (*PRIVILEGES, *mounts, "--volume", f"{ROOT / 'deploy'}:/deploy:ro")
    with started(engine, image, options=options) as machine:
        until(lambda: "running" in call(machine, "systemctl", "is-system-running").stdout)
        machine.exec("sh", "-c", INSTALL)
        write(machine, "/etc/gateway/gateway.yaml", CONFIG)
        yield machine
        call(machine, "systemctl", "stop", *SERVICES)


@pytest.fixture
def service(machine: Machine) -> Iterator[Machine]:
    """The machine with a running gateway."""
    machine.exec("systemctl", "reset-failed")
    machine.exec("systemctl", "start", "gateway")
    wait_for_journal(machine, '"connected"', 2)
    yield machine
    machine.exec("systemctl", "stop", "gateway")
    assert show(machine, "gateway", "Result") == "success"
    machine.exec("journalctl", "--rotate")
    machine.exec("journalctl", "--vacuum-time=1ms")


def call(machine: Machine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return machine.engine.call("exec", machine.name, *arguments, timeout=NIGHT_TIMEOUT)


def write(machine: Machine, path: str, text: str) -> None:
    machine.exec("sh", "-c", f"cat > {path} <<'END'\n{text}\nEND")


def show(machine: Machine, unit: str, name: str) -> str:
    return machine.exec("systemctl", "show", "--value", "--property", name, unit)


def wait_for_journal(machine: Machine, text: str, times: int = 1) -> None:
    def found() -> bool:
        return (
            machine.exec("journalctl", "--unit", "gateway", "--output", "cat").count(text) >= times
        )

    try:
        until(found, text)
    except AssertionError:
        lines = machine.exec("journalctl", "--no-pager", "--lines", "40")
        raise AssertionError(lines) from None


def test_the_service_carries_messages_without_privileges(service: Machine) -> None:
    got = service.exec(
        "sh", "-c", "mosquitto_sub -C 1 -W 60 -t 'dst/#' & sleep 0.2;"
        " while kill -0 $! 2>/dev/null; do mosquitto_pub -q 1 -t src/a -m hello; sleep 0.2; done",
    )  # fmt: skip
    assert got == "hello"

    pid = show(service, "gateway", "MainPID")
    text = service.exec("cat", f"/proc/{pid}/status")
    facts = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert facts["Uid"].split()[0] == service.exec("id", "-u", "gateway")
    assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == 0
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert service.exec("stat", "-c", "%U %a", "/etc/gateway.secrets") == "root 700"
    assert (
        "Permission denied"
        in call(
            service, "setpriv", "--reuid=gateway", "--clear-groups", "ls", "/etc/gateway.secrets"
        ).stderr
    )


def test_a_reload_and_a_restart_after_a_kill(service: Machine) -> None:
    service.exec("systemctl", "reload", "gateway")
    wait_for_journal(service, '"reloaded"')

    service.exec("systemctl", "kill", "--signal=KILL", "--kill-who=main", "gateway")
    wait_for_journal(service, '"connected"', 4)
    assert show(service, "gateway", "NRestarts") == "1"


SANDBOX = [
    pytest.param("", "import os; assert os.nice(19) == 19", id="the-nice-value-of-the-converter"),
    pytest.param(
        "",
        "import pyarrow.parquet, pyarrow.compute, numpy; from pyarrow import fs;"
        " fs.S3FileSystem(region='x', anonymous=True)",
        id="arrow",
    ),
    pytest.param(
        "",
        "from solace.messaging.messaging_service import MessagingService as service;"
        " service.builder().from_properties({'solace.messaging.transport.host': 'tcp://[::1]:9',"
        " 'solace.messaging.service.vpn-name': 'v',"
        " 'solace.messaging.authentication.basic.username': 'u',"
        " 'solace.messaging.authentication.basic.password': 'p'}).build()",
        id="solace",
    ),
    pytest.param("java.conf", "import jpype; jpype.startJVM()", id="java"),
]


@pytest.mark.parametrize(("drop_in", "statement"), SANDBOX)
def test_the_sandbox_permits_what_the_gateway_does(
    machine: Machine, drop_in: str, statement: str
) -> None:
    """The statement runs before the gateway, with its privileges and its filters."""
    folder = "/run/systemd/system/gateway.service.d"
    machine.exec("mkdir", "-p", folder)
    write(machine, f"{folder}/try.conf",
          f'[Service]\nExecStart=\nExecStart=/opt/gateway/bin/python -c "{statement}"\n'
          "Type=oneshot\nRestart=no")  # fmt: skip
    if drop_in:
        machine.exec("cp", f"/deploy/systemd/gateway.service.d/{drop_in}", folder)
    machine.exec("systemctl", "daemon-reload")
    done = call(machine, "systemctl", "restart", "gateway")
    log = machine.exec("journalctl", "--unit", "gateway", "--lines", "20", "--output", "cat")
    machine.exec("rm", "-r", folder)
    machine.exec("systemctl", "daemon-reload")

    assert done.returncode == 0, log


@pytest.mark.parametrize("name", SERVICES)
def test_a_loaded_service_has_little_exposure(machine: Machine, name: str) -> None:
    machine.exec("systemctl", "enable", "gateway-reconcile.timer")
    done = call(
        machine, "systemd-analyze", "security", f"--threshold={MAX_EXPOSURE}", "--no-pager", name
    )

    assert done.returncode == 0, done.stdout[-500:]


def test_the_timer_starts_the_night(machine: Machine) -> None:
    machine.exec("systemctl", "start", "gateway-reconcile.timer")
    shown = show(machine, "gateway-reconcile.timer", "NextElapseUSecRealtime")

    assert re.search(r" 01:(3|40)", shown), shown
    assert show(machine, "gateway-reconcile.timer", "Unit") == "gateway-reconcile.service"


@pytest.mark.spark
def test_the_night_reconciles_yesterday_and_writes_its_metrics(machine: Machine) -> None:
    archive = "/var/lib/gateway/archive"
    machine.exec(
        "install", "-d", "-o", "gateway", "-g", "gateway", "-m", "0750", "/var/lib/gateway"
    )
    machine.exec(
        "sh",
        "-c",
        f"""\
setpriv --reuid=gateway --regid=gateway --clear-groups /opt/gateway/bin/gateway \
    archive generate {archive} --messages 1000 --date $(date -u -d yesterday +%F) --routes 1""",
    )
    done = call(machine, "systemctl", "start", "gateway-reconcile.service")
    log = machine.exec("journalctl", "--unit", "gateway-reconcile", "--output", "cat")

    assert done.returncode == 0, log
    assert "missing 0" in log
    metrics = machine.exec("cat", "/var/cache/gateway/reconcile.prom")
    assert re.search(r"^gateway_reconcile_status\S* 0", metrics, re.MULTILINE)


@pytest.mark.spark
def test_the_follower_runs_until_it_is_stopped(machine: Machine) -> None:
    machine.exec("systemctl", "start", "gateway-follow")

    def has_begun() -> bool:
        state = "/var/lib/gateway/archive/_reconciled/follow/state.json"
        return call(machine, "test", "-e", state).returncode == 0

    until(
        lambda: has_begun() or show(machine, "gateway-follow", "ActiveState") != "active",
        "no batch of the follower", NIGHT_TIMEOUT,
    )  # fmt: skip
    assert show(machine, "gateway-follow", "ActiveState") == "active"
    call(machine, "systemctl", "stop", "gateway-follow")

    assert show(machine, "gateway-follow", "ExecMainStatus") in {"0", "1"}
