"""A standalone Spark cluster on loopback: a master and workers in separate processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pyspark

from gateway.trial.brokers.listening import free_port
from tests.waiting import PATIENCE, until

pause = threading.Event()  # never set: it only waits
_START_TIMEOUT = 5 * PATIENCE  # three Java processes at once
_CLASS = "org.apache.spark.deploy"


@contextmanager
def cluster(
    folder: Path, workers: int = 2, children: list[subprocess.Popen[bytes]] | None = None
) -> Iterator[str]:
    """The URL of a master with `workers` registered workers; all end with the block.

    `children` gets the processes of the workers.
    """
    port, page = free_port(), free_port()
    with ExitStack() as stack:
        address = ["--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(
            _process(folder, "master", "master.Master", *address, "--webui-port", str(page))
        )
        until(lambda: _listens(port), "the master listens", _START_TIMEOUT)
        for number in range(workers):
            own = ["--webui-port", str(free_port()), "--cores", "1", "--memory", "1g"]
            place = ["--work-dir", str(folder / f"work-{number}"), f"spark://127.0.0.1:{port}"]
            name = f"worker-{number}"
            host = ["--host", "127.0.0.1"]
            worker = _process(folder, name, "worker.Worker", *host, *own, *place)
            child = stack.enter_context(worker)
            if children is not None:
                children.append(child)
        until(lambda: _alive(page) == workers, "all workers are registered", _START_TIMEOUT)
        yield f"spark://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _alive(page: int) -> int:
    """The number of live workers on the master's page."""
    try:
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{page}/json/") as answer:
            state = json.load(answer)
    except OSError:
        return 0
    return int(state["aliveworkers"])


@contextmanager
def _process(
    folder: Path, name: str, program: str, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{name}.log").open("w") as log:
        command = [str(home / "bin" / "spark-class"), f"{_CLASS}.{program}", *arguments]
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)  # noqa: S603
        try:
            yield child
        finally:
            child.terminate()
            child.wait(PATIENCE)
