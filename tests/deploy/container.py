"""Containers for tests: a gateway with the privileges that the manifests give it, and brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.deploy.engine import Engine
from tests.waiting import until

HARDENED: Final = (
    "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",  # noqa: S108  # a mount
    "--security-opt", "no-new-privileges", "--pids-limit", "256",
)  # fmt: skip
MEMORY: Final = "768m"  # limit of the sidecar in deploy/kubernetes
LOOPBACK: Final = "127.0.0.1"


class Container:
    """A container by its name; `kill`, `start` and `stop` are those of the engine."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.name = engine, name

    def inspect(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.engine.run("inspect", self.name))[0]
        return found

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.inspect()["State"]
        return found

    @property
    def pid(self) -> int:
        """The process id on the host."""
        return int(self.state["Pid"])

    def port(self, inside: int) -> int:
        """Return the port of the host's loopback address that leads to the port `inside`."""
        return int(self.engine.run("port", self.name, str(inside)).rpartition(":")[2])

    def exec(self, *arguments: str, user: str | None = None) -> str:
        options = () if user is None else ("--user", user)
        return self.engine.run("exec", *options, self.name, *arguments)

    def log(self) -> list[dict[str, Any]]:
        """Return the JSON lines of the gateway's log since the first start."""
        done = self.engine.call("logs", self.name)
        lines = (done.stdout + done.stderr).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for_log(self, message: str, times: int = 1, **fields: object) -> None:
        """Wait until `times` lines of the log have `fields` and begin with `message`."""

        def found() -> int:
            lines = (each for each in self.log() if fields.items() <= each.items())
            return sum(str(each["message"]).startswith(message) for each in lines)

        self.wait(lambda: found() >= times)

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until `done`; a failure shows the log."""
        try:
            until(done)
        except AssertionError:
            output = self.engine.call("logs", "--tail", "30", self.name)
            raise AssertionError(output.stdout + output.stderr) from None

    def kill(self, signal: str = "KILL") -> None:
        self.engine.run("kill", "--signal", signal, self.name)

    def start(self) -> None:
        self.engine.run("start", self.name)

    def stop(self) -> int:
        """Stop with SIGTERM and return the exit status; the engine kills after 20 s."""
        self.engine.run("stop", "--time", "20", self.name, timeout=90)
        return int(self.state["ExitCode"])


@contextmanager
def started(
    engine: Engine, image: str, *command: str, name: str = "", options: tuple[str | Path, ...] = ()
) -> Iterator[Container]:
    """Start a container and remove it with its anonymous volumes at the end."""
    name = name or f"gw-{uuid4().hex[:12]}"
    engine.run("run", "--detach", "--name", name, *options, image, *command)
    try:
        yield Container(engine, name)
    finally:
        engine.run("rm", "--force", "--volumes", name)


@contextmanager
def network(engine: Engine) -> Iterator[str]:
    name = f"gw-{uuid4().hex[:12]}"
    engine.run("network", "create", name)
    try:
        yield name
    finally:
        engine.run("network", "rm", name)


@contextmanager
def volume(engine: Engine) -> Iterator[str]:
    """A named volume: the engine gives it the files and the owner of the image's folder."""
    name = f"gw-{uuid4().hex[:12]}"
    engine.run("volume", "create", name)
    try:
        yield name
    finally:
        engine.run("volume", "rm", "--force", name)


def gateway_options(
    network_name: str, state: str, settings: Path, variables: Mapping[str, str]
) -> tuple[str | Path, ...]:
    """Return the options of a gateway as the manifests start it; port 8047 is published."""
    given = [part for key, value in variables.items() for part in ("--env", f"{key}={value}")]
    return (
        *HARDENED, "--memory", MEMORY, "--network", network_name, *given,
        "--publish", f"{LOOPBACK}::8047",
        "--volume", f"{state}:/var/lib/gateway", "--volume", f"{settings}:/etc/gateway:ro",
    )  # fmt: skip
