"""Walks through the pages with sessions, each in a folder and a network of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.trial.brokers import nats
from gateway.trial.brokers.activemq import missing
from tests.brokers import servers
from tests.docs_groups import TYPED_PAGES
from tests.own_network import own_network

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs/tutorials").glob("*-*.md")),
    *(ROOT / each for each in TYPED_PAGES),
]
LIMIT = 280  # seconds


def reason_to_skip(page: Path) -> str:
    if reason := servers.missing("mosquitto"):
        return reason
    if not own_network():
        return "no network namespaces"
    text = page.read_text("utf-8")
    absent = missing() if "gateway broker activemq" in text else ""
    if "$ noida-db" in text and find_spec("noida_db") is None:
        absent = "noida_db is not installed: gateway[dev]"
    return absent or (nats.missing() if "nats-server" in text else "")


def walk(page: Path, folder: Path, *left_out: str, seconds: float = LIMIT) -> None:
    if reason := reason_to_skip(page):
        pytest.skip(reason)
    done = subprocess.run(  # noqa: S603  # our own command
        (*own_network(), sys.executable, "-m", "tests.tutorials.walk", str(page), *left_out),
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=seconds,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
