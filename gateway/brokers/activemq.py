"""Debian's ActiveMQ as a plain Java process: free loopback ports, its own folder, no daemon."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import NotConnectedError

JARS = Path("/usr/share/java")
FACTORY = "org.apache.activemq.ActiveMQConnectionFactory"
USUAL_PORT = 61616
PATIENCE = 30.0  # seconds for a broker to answer
_CLIENT = (
    "activemq-client", "geronimo-jms_1.1_spec", "geronimo-j2ee-management-1.1-spec", "slf4j-api",
    "slf4j-nop", "hawtbuf",
)  # fmt: skip
_BROKER = (
    "activemq-console", "activemq-broker", "activemq-kahadb-store", "activemq-openwire-legacy",
    "activemq-protobuf", "activemq-mqtt", "activemq-stomp", "mqtt-client",
)  # fmt: skip


def client_jars() -> tuple[str, ...]:
    return tuple(str(JARS / f"{name}.jar") for name in _CLIENT)


def missing() -> str:
    """Why no broker can be started here, or nothing."""
    if shutil.which("java") is None:
        return "no java"
    absent = [name for name in _CLIENT + _BROKER if not (JARS / f"{name}.jar").exists()]
    if absent:
        return f"no {', '.join(absent)}: apt-get install activemq libmqtt-client-java"
    return ""


def free_ports(number: int) -> list[int]:
    with closing(socket.socket()) as first:
        first.bind(("127.0.0.1", 0))
        port: int = first.getsockname()[1]
        return [port, *free_ports(number - 1)] if number > 1 else [port]


class ActiveMq:
    """One broker; mutable: it runs or not. What it has stored survives a restart."""

    def __init__(self, folder: Path, options: str = "") -> None:
        self.folder = folder
        self.port, self.mqtt_port = free_ports(2)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process that runs.

        Raises:
            NotConnectedError: it does not.
        """
        if self._process is None:
            raise NotConnectedError("activemq does not run")
        return self._process.pid

    def settings(self, **changes: object) -> JmsSettings:
        facts: dict[str, object] = {
            "name": "amq",
            "classpath": client_jars(),
            "factory": FACTORY,
            "urls": (self.url,),
            "connect_timeout": 5.0,
        }
        return JmsSettings(**(facts | changes))  # type: ignore[arg-type]  # of any setting's type

    def start(self) -> None:
        place = str(self.folder)
        homes = [f"-Dactivemq.{name}={place}" for name in ("home", "base", "conf", "data")]
        uri = (
            f"broker:({self.url},mqtt://127.0.0.1:{self.mqtt_port})?brokerName=gw"
            f"&persistent=true&dataDirectory={place}&useJmx=false{self._options}"
        )
        path = ":".join([*client_jars(), *(str(JARS / f"{name}.jar") for name in _BROKER)])
        command = ["java", "-Xmx512m", *homes, "-cp", path]
        command += ["org.apache.activemq.console.Main", "start", uri]
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # a program the machine has
                command, stdout=log, stderr=log, cwd=place
            )
        self._await_ports()

    def _await_ports(self) -> None:
        process = self._process
        until = time.monotonic() + PATIENCE
        waiting = [self.port, self.mqtt_port]
        while waiting:
            if process is None or process.poll() is not None or time.monotonic() > until:
                self.kill()
                said = (self.folder / "broker.log").read_text()[-2000:]
                raise NotConnectedError(f"activemq did not start: {said}")
            try:
                socket.create_connection(("127.0.0.1", waiting[0]), timeout=1).close()
            except OSError:
                time.sleep(0.02)  # the one place where a condition has no event to wait for
            else:
                waiting.pop(0)

    def freeze(self) -> None:
        """It keeps its connections and says nothing any more."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(kill=True)

    def stop(self) -> None:
        self._end(kill=False)

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill() if kill else process.terminate()
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running(folder: Path, options: str = "") -> Iterator[ActiveMq]:
    broker = ActiveMq(folder, options)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def main() -> None:
    """`python -m gateway.brokers.activemq [PORT]`: a broker to try things with, until Ctrl-C."""
    if why := missing():
        raise SystemExit(why)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        broker = ActiveMq(Path(folder))
        broker.port = int(sys.argv[1]) if len(sys.argv) > 1 else USUAL_PORT
        try:
            broker.start()
            jars = "".join(f"  - {jar}\n" for jar in client_jars())
            sys.stdout.write(f'urls: ["{broker.url}"]\nfactory: {FACTORY}\nclasspath:\n{jars}')
            sys.stdout.flush()
            signal.pause()
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
