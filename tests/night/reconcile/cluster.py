"""A standalone Spark cluster on loopback: a master and workers in separate processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pyspark

from benchmarks.tree import tree
from gateway.trial.brokers.listening import free_port
from tests.waiting import PATIENCE, until

BASE_PYTHON = Path(sys.base_prefix, "bin", "python3")  # without the packages of this environment
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # also of executors: half the processor time
)
_CLASS = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Worker:
    """A worker with one core; its `folder` has one of each executor, by application."""

    process: subprocess.Popen[bytes]
    folder: Path

    def freeze_executors(self) -> None:
        """Stop the executors with their Python processes, while the worker tells that it lives."""
        for pid in tree(self.process.pid)[1:]:
            os.kill(pid, signal.SIGSTOP)


@dataclass
class Cluster:
    """A running master; its page answers at `page`. `workers` are alive, the oldest first."""

    folder: Path
    stack: ExitStack
    port: int = field(default_factory=free_port)
    page: int = field(default_factory=free_port)
    workers: list[Worker] = field(default_factory=list)
    started: int = 0

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._run("master", "master.Master", self.port, self.page)
        eventually(self._listens, "the master listens")

    def grow(self, workers: int) -> None:
        """Start workers until there are as many, and wait until the master knows them."""
        while len(self.workers) < workers:
            self.started += 1
            work = self.folder / f"work-{self.started}"
            more = ["--cores", "1", "--memory", "1g", "--work-dir", str(work), self.url]
            child = self._run(work.name, "worker.Worker", free_port(), free_port(), *more)
            self.workers.append(Worker(child, work))
        eventually(self._complete, "all workers are registered")

    def kill(self, worker: Worker) -> None:
        """Kill a worker with its executors."""
        _end(worker.process)
        self.workers.remove(worker)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _complete(self) -> bool:
        state = answer(self.page, "json/")
        return state is not None and state["aliveworkers"] == len(self.workers)

    def _run(
        self, name: str, program: str, port: int, page: int, *more: str
    ) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        own = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "128m",
            "JDK_JAVA_OPTIONS": QUICK_JAVA,
            "AWS_ACCESS_KEY_ID": "test",  # of the bucket that a test starts
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        ports = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
        command = [str(home / "bin" / "spark-class"), f"{_CLASS}.{program}", *ports, *more]
        log = self.stack.enter_context((self.folder / f"{name}.log").open("w"))
        child = subprocess.Popen(  # noqa: S603  # Spark's own program
            command, env={**os.environ, **own}, stdout=log, stderr=log
        )
        self.stack.callback(_end, child)
        return child


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster without workers yet; all of its processes end with the block."""
    with ExitStack() as stack:
        made = Cluster(folder, stack)
        made.start()
        yield made


def python_without_gateway(folder: Path) -> Path:
    """Return a Python of executors that has all packages of this environment but the gateway.

    Its installation here is a `.pth` file, which Python does not read on PYTHONPATH.
    """
    program = folder / "python"
    packages = sysconfig.get_path("purelib")
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {BASE_PYTHON} "$@"\n')
    program.chmod(0o755)
    return program


@dataclass(frozen=True)
class Driver:
    """The only application of a driver, by its status at `page`."""

    page: int

    def settings(self) -> dict[str, str]:
        """Return the settings that the driver runs with."""
        answered: Any = self._answer("/environment")
        return dict(answered["sparkProperties"])

    def has_executor(self, worker: Worker) -> bool:
        return bool(self._executors(worker))

    def waits_for(self, worker: Worker) -> bool:
        """Whether tasks of this worker are all that the running stages have left."""
        running: int = sum(each["activeTasks"] for each in self._executors(worker))
        left: int = sum(each["numTasks"] - each["numCompleteTasks"] for each in self._stages())
        return 0 < running == left

    def _executors(self, worker: Worker) -> list[Any]:
        known = {path.name for path in worker.folder.glob(f"{self._name()}/*")}
        return [each for each in self._answer("/executors") if each["id"] in known]

    def _stages(self) -> list[Any]:
        return self._answer("/stages?status=active")

    def _answer(self, path: str) -> list[Any]:
        return answer(self.page, f"api/v1/applications/{self._name()}{path}") or []

    def _name(self) -> str:
        return next((each["id"] for each in answer(self.page, "api/v1/applications") or ()), "-")


def eventually(done: Callable[[], bool], what: str) -> None:
    """Return when `done` is true, with patience for several Java processes that start at once."""
    until(done, what, 10 * PATIENCE, every=0.2)


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants."""
    for each in tree(pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def answer(page: int, path: str) -> Any:  # noqa: ANN401  # JSON
    """Return what a page of Spark answers; None while it does not."""
    try:
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{page}/{path}") as found:
            return json.load(found)
    except HTTPError as refused:
        refused.close()
    except OSError:
        pass
    return None


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        kill_tree(child.pid)
        child.wait()
