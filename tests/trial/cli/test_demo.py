"""The demonstration, which is the first night that anybody sees: it is plainly clean."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.trial.demo.systems import SYSTEMS

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

README = Path(__file__).parents[3] / "README.md"


def shape(line: str) -> str:
    """Return a line without its figures, and without the folder of its report."""
    return re.sub(r"[\d,]+", "N", re.sub(r"file://\S+", "file:", line.strip()))


def test_the_demo_ends_with_a_clean_night_as_the_readme_shows(tmp_path: Path) -> None:
    missing = {each.name: why for each in SYSTEMS if (why := each.why_missing())}
    if {*missing} - {"amqp", "kafka"}:  # few machines have a RabbitMQ 4, or noida-db
        pytest.skip(" ".join(missing.values()))
    systems = ", ".join(each.name for each in SYSTEMS if each.name not in missing)
    command = [sys.executable, "-m", "gateway", "demo", "--messages", "1000"]
    done = subprocess.run(  # noqa: S603  # our own command
        [*command, "--archive", str(tmp_path / "archive")],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"<-> {systems} ─" in done.stdout
    path = done.stdout.partition("one message over both gateways")[2].partition("\n\n")[0]
    assert sorted(line.split()[:3] for line in path.strip().splitlines()[1:]) == [
        [gateway, f"{topic}-{way}", leg]
        for gateway, way in (("office", "out"), ("plant", "in"))
        for topic in ("billing", "orders", "shipping", "trades")
        for leg in ("delivered", "received")
    ]
    shown = README.read_text().partition("`make demo` ends with its totals:\n\n")[2]
    wanted = [shape(line) for line in shown.partition("\n\n")[0].splitlines()]
    assert "verdict: clean" in wanted
    assert [shape(line) for line in done.stdout.splitlines()][-len(wanted) :] == wanted
    assert "not-running" not in "".join(re.findall(r"source gap: .*", done.stdout))
