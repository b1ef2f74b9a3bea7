"""Measures MQTT QoS 1 -> JMS persistent -> MQTT QoS 1 with three bridges: rate, losses, memory.

    python -m benchmarks.jms_relay [--messages N] [--topics N ...]

The bridges are the gateway with its archive and the callback loop of `jms_callbacks`, each between
mosquitto and a durable subscription of ActiveMQ; and ActiveMQ's own translation, which receives and
sends messages at its MQTT port and writes nothing to disk. Each is warmed up first. When brokers,
load and bridge share few cores, compare the processor time per message instead of the rate. Memory
is the final and the peak value of one process; the archive's converter is separate, see `memory`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.columns import printed_rows
from benchmarks.memory import memory
from benchmarks.processor import seconds
from benchmarks.relay import broker, resident, run_load
from benchmarks.relay import running as running_process
from gateway.trial.brokers.activemq import FACTORY, client_jars, missing
from gateway.trial.brokers.listening import free_port
from tests.brokers.controlled_activemq import ActiveMq, running

HERE = Path(__file__).parent
RELAYS = {"activemq": 1.0, "callbacks": 0.1, "gateway": 1.0}  # and their shares of the messages
CONFIG = """\
gateway: {{name: bench}}
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}, version: "3.1.1"}}
  core: {{kind: jms, dialect: ems, classpath: [{jars}], factory: {factory}, urls: ["{url}"],
         client_id: bench, durable: "bench-{{pattern}}"}}
routes:
  there:
    from: {{endpoint: plant, pattern: "src/{{rest...}}"}}
    to: {{endpoint: core, template: "B.{{rest...}}"}}
  back:
    from: {{endpoint: core, pattern: "B.{{rest...}}"}}
    to: {{endpoint: plant, template: "dst/{{rest...}}"}}
archive: {{path: {archive}}}
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--relays", nargs="*", default=list(RELAYS), choices=RELAYS)
    parser.add_argument("--topics", type=int, nargs="*", default=[10, 1_000])
    args = parser.parse_args(arguments)
    if why := missing():
        print(f"skipped: {why}")
        return
    with printed_rows() as add:
        for topics in args.topics:
            rates: dict[str, float] = {}
            for relay in args.relays:
                figures = measure(relay, round(args.messages * RELAYS[relay]), topics)
                rate = figures["messages_per_s"]
                ratios = {f"x {other}": round(rate / one, 2) for other, one in rates.items()}
                rates[relay] = rate
                add({"relay": relay, "topics": topics, **figures, **ratios})


def measure(relay: str, messages: int, topics: int) -> dict[str, float]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = folder / "activemq"
        store.mkdir()
        jms = stack.enter_context(running(store))
        pids, port = {"activemq": jms.pid}, jms.mqtt_port
        if relay != "activemq":
            port = free_port()
            stack.enter_context(broker(folder, port))
            process: subprocess.Popen[bytes] = stack.enter_context(
                running_process(command(relay, folder, port, jms))
            )
            pids["relay"] = process.pid
        load = [sys.executable, str(HERE / "relay_load.py"), "--qos", "1", "--topics", str(topics)]
        load += ["--from-port", str(port), "--to-port", str(port), "--start-timeout", "60"]
        load += ["--expect", "src/#" if relay == "activemq" else "dst/#"]
        load += ["--messages", str(messages)]
        run_load(load)  # warms up Java
        before = {name: seconds(pid) for name, pid in pids.items()}
        figures = run_load(load)
        spent = {name: seconds(pid) - before[name] for name, pid in pids.items()}
        resident_mb = {f"{name}_mb": resident(pid) for name, pid in pids.items()}
        peak_mb = {f"{name}_peak_mb": round(memory(pid)["VmHWM"]) for name, pid in pids.items()}
    return {
        "messages_per_s": round(float(str(figures["messages_per_s"]))),
        "lost": int(str(figures["lost"])),
        "duplicates": int(str(figures["duplicates"])),
        **{f"{name}_us": round(1e6 * each / messages) for name, each in spent.items()},
        **resident_mb,
        **peak_mb,
    }


def command(relay: str, folder: Path, port: int, jms: ActiveMq) -> list[str]:
    if relay == "callbacks":
        script = [sys.executable, str(HERE / "jms_callbacks.py"), jms.url, FACTORY, str(port)]
        return [*script, *client_jars()]
    config = folder / "bench.yaml"
    config.write_text(
        CONFIG.format(
            port=port,
            jars=", ".join(client_jars()),
            factory=FACTORY,
            url=jms.url,
            archive=folder / "archive",
        )
    )
    return [sys.executable, "-m", "gateway", "run", str(config)]


if __name__ == "__main__":
    main()
