"""The commands that a person types to replace a bridge of mosquitto, in an empty folder.

A program, run in a network of its own: no other process there has the default port of the page.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.archived import convert_journals
from tests.brokers import servers
from tests.brokers.mosquitto import OPEN, Mosquitto
from tests.brokers.running import Client
from tests.own_network import start_loopback
from tests.waiting import PATIENCE, until

BRIDGES = """\
listener {local} 127.0.0.1
allow_anonymous true
log_type warning

# the office
connection office
address 127.0.0.1:{remote}
bridge_protocol_version mqttv50
notification_topic bridge/line-7
topic state/# out 1 line-7/ plants/7/
topic commands/# in 1
topic orders/# both 1
"""
CONNECTIONS = ("local source", "local sink", "remote source", "remote sink")
SENT = (
    [  # by the local and by the remote broker's client
        ("line-7/state/press", "plants/7/state/press"),
        ("orders/1", "orders/1"),
    ],
    [("commands/stop", "commands/stop"), ("orders/2", "orders/2")],
)


def typed(text: str) -> str:
    """Type a command of the gateway and return its output; its exit status is 0."""
    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", *shlex.split(text)],
        capture_output=True, text=True, check=False, timeout=6 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, (text, done.returncode, done.stdout, done.stderr)
    return done.stdout


def started(name: str) -> Mosquitto:
    folder = Path(name)
    folder.mkdir()
    broker = Mosquitto(servers.required("mosquitto"), folder, OPEN)
    broker.start()
    return broker


def cross(local: Client, remote: Client) -> None:
    """Send a message by each topic line, and wait for its copy on the other side."""
    for (source, target), pairs in zip(((local, remote), (remote, local)), SENT, strict=True):
        for name, copy in pairs:
            source.publish(name, name.encode()).wait_for_publish(PATIENCE)
            target.wait_for(partial(contains, (copy, name.encode())))


def contains(message: tuple[str, bytes], arrived: list[tuple[str, bytes]]) -> bool:
    return message in arrived


def story(local: Mosquitto, remote: Mosquitto) -> None:
    text = BRIDGES.format(local=local.port, remote=remote.port)
    Path("mosquitto.conf").write_text(text)

    typed("gateway import mosquitto mosquitto.conf -o plant.yaml")
    typed("gateway check plant.yaml")
    day = datetime.now(tz=UTC).date()
    command = [sys.executable, "-m", *shlex.split("gateway run plant.yaml")]
    with Path("log").open("wb") as log:
        running = subprocess.Popen(command, stderr=log)  # noqa: S603  # likewise
    try:
        until(lambda: Path("log").read_text().count('"connected"') == len(CONNECTIONS))
        here, there = Client(local.port, "#"), Client(remote.port, "#")
        cross(here, there)
        shown = typed("gateway status")
        assert "office" in shown, shown
        here.close()
        there.close()
    finally:
        running.send_signal(signal.SIGTERM)
        status = running.wait(PATIENCE)
    assert status == 0, Path("log").read_text()
    convert_journals(Path("archive"))  # a stop leaves some on a slow machine
    sys.stdout.write(typed(f"gateway reconcile archive --date {day}"))


def main() -> None:
    start_loopback()
    local, remote = started("local"), started("remote")
    try:
        story(local, remote)
    finally:
        local.kill()
        remote.kill()


if __name__ == "__main__":
    main()
