"""The rabbitmq-server of the machine, on free loopback ports and with a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from gateway.errors import NotConnectedError
from gateway.extras import not_installed
from gateway.trial.brokers.listening import free_port, start_process, wait_until_it_listens

PROGRAM = "rabbitmq-server"
FOLDER = "/usr/lib/rabbitmq/bin"  # of Debian, whose program in /usr/sbin changes the user
AMQP_VERSION = 4  # the first one whose main protocol is AMQP 1.0
START_TIMEOUT = 120.0  # seconds; Erlang starts slowly on a busy machine
# By default the server's threads sleep at once instead of looking for work a moment longer. Its
# start then has 7 seconds instead of 3, and three times the system time.
QUICK_ERLANG = "+sbwt very_short +sbwtdcpu very_short +sbwtdio very_short"


def find_program(name: str = PROGRAM) -> str | None:
    """Return the path of the server, or of a tool beside it."""
    return shutil.which(name, path=os.pathsep.join((FOLDER, os.environ.get("PATH", ""))))


def missing() -> str:
    """Return the reason why no server can be used, or an empty text."""
    if find_program() is None:
        return "no rabbitmq-server: apt-get install rabbitmq-server"
    return "" if find_spec("pika") else not_installed("pika", "rabbitmq")


def missing_amqp() -> str:
    """Return the reason why no server of AMQP 1.0 can be used, or an empty text."""
    tool = find_program("rabbitmqctl")
    if find_program() is None or tool is None:
        return "no rabbitmq-server: apt-get install rabbitmq-server"
    told = subprocess.run([tool, "version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = told.stdout.strip()
    major = found.partition(".")[0]
    is_new = major.isdecimal() and int(major) >= AMQP_VERSION
    return (
        "" if is_new else f"rabbitmq-server {found or 'of no version'} has no AMQP 1.0 before 4.0"
    )


class RabbitmqNode:
    """A node with its own Erlang port mapper; durable queues survive `stop` and `kill`.

    `lines` are of its configuration, `plugins` their names, `erlang` more arguments of its virtual
    machine. Mutable: owned by the thread that starts and stops it.
    """

    def __init__(
        self,
        folder: Path,
        lines: Sequence[str] = (),
        plugins: Sequence[str] = (),
        erlang: str = QUICK_ERLANG,
    ) -> None:
        self.folder, self.port = folder, free_port()
        self.name = f"gateway-{os.getpid()}-{self.port}@localhost"
        self._epmd_port = free_port()
        config = folder / "rabbitmq.conf"
        config.write_text("\n".join([f"listeners.tcp.1 = 127.0.0.1:{self.port}", *lines, ""]))
        (folder / "plugins").write_text(f"[{', '.join(plugins)}].")
        self._environment = os.environ | {
            "HOME": str(folder),  # of the cookie
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_RELAXED_COMMAND_CHECK": "1",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "no.conf"),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": erlang,
            "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the node: no process between
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            NotConnectedError: it does not start.
        """
        command, output = self.command(PROGRAM), self.folder / "output"
        # the node writes the dumps of a crash where it runs
        self.process = start_process(command, self.folder, output, self._environment)
        try:
            wait_until_it_listens(PROGRAM, self.port, self.process, START_TIMEOUT)
        except NotConnectedError:
            self.kill()
            raise

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def command(self, tool: str) -> list[str]:
        """Return the command of the server, or of a tool beside it."""
        return [find_program(tool) or tool]

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a tool of the server or of Erlang with the node's environment."""
        return subprocess.run(  # noqa: S603  # a program of the machine
            [*self.command(tool), *arguments],
            env=self._environment,
            timeout=START_TIMEOUT,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(START_TIMEOUT)
            with suppress(FileNotFoundError):  # the next start brings another one
                self.run("epmd", "-port", str(self._epmd_port), "-kill")


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a node for the duration of the block; yield its URL. Its messages end with it.

    Raises:
        NotConnectedError: the node did not start.
    """
    node = RabbitmqNode(folder)
    try:
        node.start()
        yield node.url
    finally:
        node.kill()
