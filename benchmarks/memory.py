"""Measures the sidecar without Java: time until ready, idle and busy memory, disk per message.

The gateway carries MQTT between two mosquitto brokers, with archive, spool and web server. The
archive's converter is a separate process that runs for seconds; its memory is measured separately.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.relay import HERE, Shape, broker, configuration, run_load, running
from benchmarks.tree import PeakMemory, tree
from gateway.trial.brokers.listening import free_port

SECTIONS = "spool: {{path: {spool}}}\nweb: {{port: {web}}}\n"
IDLE_TIME = 5.0  # seconds from readiness to the measurement of idle memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=5_000, help="messages a second")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--qos", type=int, default=1, choices=(0, 1))
    args = parser.parse_args()
    print(json.dumps(measure(args.qos, args.rate, args.messages)), flush=True)


def measure(qos: int, rate: int, messages: int) -> dict[str, object]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target, web = free_port(), free_port(), free_port()
        stack.enter_context(broker(folder, source))
        stack.enter_context(broker(folder, target))
        config = folder / "bench.yaml"
        text = configuration(Shape(qos), source, target, folder / "archive")
        config.write_text(text + SECTIONS.format(spool=folder / "spool", web=web))
        started = time.perf_counter()
        gateway = stack.enter_context(
            running([sys.executable, "-m", "gateway", "run", str(config)])
        )
        ready = wait_until_ready(web, started)
        threading.Event().wait(IDLE_TIME)
        idle = memory(gateway.pid)["VmRSS"]
        peak = stack.enter_context(PeakMemory(lambda: converter(gateway.pid)))
        load = [sys.executable, str(HERE / "relay_load.py"), "--from-port", str(source)]
        load += ["--to-port", str(target), "--qos", str(qos), "--rate", str(rate)]
        figures = run_load([*load, "--messages", str(messages), "--warmup", "500"])
        busy = memory(gateway.pid)
        gateway.terminate()
        gateway.wait(30)
        disk = size(folder / "archive")
    return {
        "qos": qos,
        "rate": rate,
        "messages": messages,
        "lost": figures["lost"],
        "latency_ms": figures["latency_ms"],
        "ready_s": round(ready, 2),
        "idle_mb": round(idle),
        "busy_mb": round(busy["VmRSS"]),
        "most_mb": round(busy["VmHWM"]),
        "converter_mb": round(peak.megabytes),
        "archive_bytes_a_message": round(disk / messages, 1),
    }


def converter(gateway: int) -> float:
    """Return the highest peak memory of the gateway's running child processes, in MB."""
    below = (pid for pid in tree(gateway) if pid != gateway)
    return max((memory(pid).get("VmHWM", 0.0) for pid in below), default=0.0)


def memory(pid: int) -> dict[str, float]:
    """Return the memory figures of /proc in MB; none when the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":") for line in lines if line.startswith("Vm"))
    return {name: int(value.split()[0]) / 1024 for name, value in pairs}


def wait_until_ready(port: int, started: float) -> float:
    """Return the seconds from `started` until /readyz answers 200."""
    while not ready(port):
        assert time.perf_counter() - started < 30  # noqa: PLR2004  # seconds
        time.sleep(0.01)
    return time.perf_counter() - started


def ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200  # noqa: PLR2004  # OK
    except OSError:
        return False
    finally:
        connection.close()


def size(archive: Path) -> int:
    """Return the bytes of segments, and of journals not yet converted."""
    folders = [*archive.glob("date=*"), archive / ".journal"]
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    main()
