"""`gateway broker smf` as a process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import main, make_parser
from gateway.trial.brokers.smf.responses import UNKNOWN_QUEUE
from gateway.wire.smf.responses import OK, SmfResponse
from tests.brokers.smf_client import SmfClient
from tests.waiting import PATIENCE


def test_the_command_prints_its_address_and_ends_on_a_signal(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("u:p\n")
    options = ["--logins", str(users), "--vpn", "trial", "--queue", "q=a/>,b"]
    arguments = [sys.executable, "-m", "gateway", "broker", "smf", *options]
    with subprocess.Popen(  # noqa: S603
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        found = re.fullmatch(r"listening on tcp://127\.0\.0\.1:(\d+)\n", process.stdout.readline())
        assert found
        with SmfClient(int(found[1])) as client:
            assert client.log_in("c", vpn="default") == SmfResponse(403, "Message VPN Not Allowed")
        with SmfClient(int(found[1])) as client:
            assert client.log_in("c", vpn="trial") == OK
            assert client.bind("q").response == OK
            assert client.bind("absent").response == UNKNOWN_QUEUE
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE) == 0
        logged = [line.split(maxsplit=2)[2] for line in process.stderr]
    refused = "login refused to client 'c', user 'u', VPN 'default': Message VPN Not Allowed"
    assert logged == [
        "Ctrl-C or SIGTERM stops the broker\n",
        f"smf broker: closing a connection: {refused}\n",
        "smf broker: c logged in, user 'u', VPN 'trial'\n",
        "smf broker: refused to c: Unknown Queue\n",
        "smf broker: c disconnected\n",
        "stopped\n",
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(["--user", "u:p"], "unrecognized arguments", id="password-in-arguments"),
        pytest.param(["--queue", "=a"], "the queue has no name", id="no-queue-name"),
    ],
)
def test_an_invalid_option_is_refused(
    options: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        make_parser("broker").parse_args(["broker", "smf", *options])

    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(
            "u:p\nhunter2\n", "user 2 has no password; write NAME:PASSWORD", id="no-colon"
        ),
        pytest.param(":p", "user 1 has no password", id="no-name"),
        pytest.param(None, "cannot read the users", id="no-file"),
    ],
)
def test_a_wrong_file_of_users_is_refused(
    tmp_path: Path, content: str | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    users = tmp_path / "users"
    if content is not None:
        users.write_text(content)

    assert main(["broker", "smf", "--logins", str(users)]) == 2
    assert text in (error := capsys.readouterr().err)
    assert "hunter2" not in error
