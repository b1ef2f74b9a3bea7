"""A process with a JMS endpoint for hostile brokers: `python -m tests.brokers.jms_victim`.

It reads settings as JSON lines, opens a source and a sink with each, and answers a line about both.
A JVM that a broker exhausts ends this process, and not that of the tests.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from gateway.endpoints import tls
from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSink, JmsSource, open_sink, open_source
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import GatewayError
from gateway.trial.brokers.activemq import FACTORY, client_jars


def attempt(endpoint: JmsSource | JmsSink) -> dict[str, object]:
    """Open the endpoint; return what a gateway would say, and the seconds that it took."""
    began = time.monotonic()
    try:
        endpoint.open()
        if isinstance(endpoint, JmsSource):
            endpoint.receive(0.2)
        told = "open"
    except GatewayError as error:
        told = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # a fault: the test says so
        told = f"unexpected {type(error).__name__}: {error}"
    endpoint.close()
    return {"told": told, "seconds": time.monotonic() - began}


def peak_memory() -> int:
    """Return the peak in bytes; `getrusage` would give that of the parent, if it is larger."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10


def main() -> None:
    vars(tls)["PROBE_TIMEOUT"] = 0.2  # seconds: a hostile server answers no handshake
    for line in sys.stdin:
        facts = {
            "name": "victim",
            "classpath": client_jars(),
            "factory": FACTORY,
            **json.loads(line),
        }
        for each in ("urls", "properties"):
            facts[each] = tuple(facts.get(each, ()))
        settings = JmsSettings(**facts)
        answer = {
            "source": attempt(open_source(settings, [Subscription("a")])),
            "sink": attempt(open_sink(settings)),
            "megabytes": peak_memory() >> 20,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
