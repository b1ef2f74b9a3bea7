"""The command `broker yami4`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from gateway.cli import make_parser
from tests.brokers.yami4_client import Client
from tests.waiting import PATIENCE

PROGRAM = """
from gateway.cli import make_parser
args = make_parser("broker").parse_args()
raise SystemExit(args.run(args))
"""


def test_the_broker_prints_its_address_and_ends_on_sigterm() -> None:
    arguments = [sys.executable, "-c", PROGRAM, "broker", "yami4", "--max-subscriptions", "1"]
    with subprocess.Popen(  # noqa: S603
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"listening on (tcp://127\.0\.0\.1:\d+)\n", line)
        assert found
        with Client(found[1]) as client:
            client.subscribe("a")
            assert client.subscribe("b").heading.reason == b"Subscription table full."
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE) == 0
        logged = [line.split(maxsplit=2)[2] for line in process.stderr]
    peer = logged[1].split()[2]
    assert peer.startswith("tcp://127.0.0.1:")
    assert logged == [
        "Ctrl-C or SIGTERM stops the broker\n",
        f"yami4 broker: {peer} connected\n",
        f"yami4 broker: refused to {peer}: Subscription table full.\n",
        f"yami4 broker: {peer} disconnected\n",
        "stopped\n",
    ]


def test_an_unknown_policy_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser("broker").parse_args(["broker", "yami4", "--overflow-policy", "wait"])

    assert "'drop_update', 'reject_message', 'unsubscribe'" in capsys.readouterr().err
