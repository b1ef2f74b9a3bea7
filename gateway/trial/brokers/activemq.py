"""Debian's ActiveMQ as a Java process on free loopback ports, with its own folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.errors import NotConnectedError
from gateway.trial.brokers.listening import end, free_port, start_process, wait_until_it_listens

JARS = Path("/usr/share/java")
FACTORY = "org.apache.activemq.ActiveMQConnectionFactory"
DEFAULT_PORT = 61616
LOG = "broker.log"
START_TIMEOUT = 30.0  # seconds; also for a stop
# For a broker that runs for a minute: the optimising compiler takes longer than it saves.
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_CLIENT_JARS = (
    "activemq-client",
    "geronimo-jms_1.1_spec",
    "geronimo-j2ee-management-1.1-spec",
    "slf4j-api",
    "slf4j-nop",
    "hawtbuf",
)
_BROKER_JARS = (
    "activemq-console",
    "activemq-broker",
    "activemq-kahadb-store",
    "activemq-openwire-legacy",
    "activemq-protobuf",
    "activemq-mqtt",
    "activemq-stomp",
    "mqtt-client",
)


def client_jars() -> tuple[str, ...]:
    return tuple(str(JARS / f"{name}.jar") for name in _CLIENT_JARS)


def missing() -> str:
    """Return the reason why no broker can be started, or an empty text."""
    if shutil.which("java") is None:
        return "no java"
    absent = [name for name in _CLIENT_JARS + _BROKER_JARS if not (JARS / f"{name}.jar").exists()]
    return f"no {', '.join(absent)}: apt-get install activemq libmqtt-client-java" if absent else ""


class ActiveMq:
    """One broker; its stored messages survive a restart.

    Mutable: owned by the thread that starts and stops it.
    """

    java_options: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.mqtt_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def jars(self) -> list[str]:
        """The class path of the process."""
        return [*client_jars(), *(str(JARS / f"{name}.jar") for name in _BROKER_JARS)]

    @property
    def configuration(self) -> str:
        """The configuration of the process, as a URI."""
        return (
            f"broker:({self.url},mqtt://127.0.0.1:{self.mqtt_port})?brokerName=gw"
            f"&persistent=true&dataDirectory={self.folder}&useJmx=false"
        )

    def start(self) -> None:
        homes = [f"-Dactivemq.{name}={self.folder}" for name in ("home", "base", "conf", "data")]
        command = ["java", "-Xmx512m", *self.java_options, *homes, "-cp", ":".join(self.jars)]
        command += ["org.apache.activemq.console.Main", "start", self.configuration]
        log = self.folder / LOG
        self._process = start_process(command, self.folder, log)
        try:
            for port in (self.port, self.mqtt_port):
                wait_until_it_listens("activemq", port, self._process, START_TIMEOUT)
        except NotConnectedError as error:
            self.kill()
            raise NotConnectedError(f"activemq did not start: {log.read_text()[-2000:]}") from error

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, START_TIMEOUT)


@contextmanager
def running(folder: Path) -> Iterator[ActiveMq]:
    broker = ActiveMq(folder)
    broker.java_options = QUICK_JAVA
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def serve(port: int, store: Path | None = None) -> None:
    """Run a broker for trials until SIGTERM or Ctrl-C, and print the settings of its endpoint.

    Its messages are kept in the folder `store`, or lost at the end. Port 0 selects a free port.

    Raises:
        NotConnectedError: the broker is not installed, or does not start.
    """
    if reason := missing():
        raise NotConnectedError(f"activemq: {reason}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as temporary:
        folder = store or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        broker = ActiveMq(folder.resolve())
        broker.port = port or broker.port
        try:
            broker.start()
            jars = "".join(f"  - {jar}\n" for jar in client_jars())
            sys.stdout.write(f"# listening on {broker.url}; MQTT on port {broker.mqtt_port};")
            sys.stdout.write(f" Ctrl-C stops it; its log is {broker.folder / LOG}\n")
            sys.stdout.write(f'urls: ["{broker.url}"]\nfactory: {FACTORY}\nclasspath:\n{jars}')
            sys.stdout.flush()
            signal.pause()
        finally:
            broker.stop()
