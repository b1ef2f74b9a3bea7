"""ActiveMQ as tests use it: suspended and continued, and as the settings of an endpoint."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import NotConnectedError
from gateway.trial.brokers import activemq
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.suspending import suspend
from tests.waiting import PATIENCE


class ActiveMq(activemq.ActiveMq):
    """One broker; its stored messages survive a restart.

    Mutable: owned by the thread that starts and stops it.
    """

    @property
    def pid(self) -> int:
        """Return the id of the process.

        Raises:
            NotConnectedError: the broker does not run.
        """
        if self._process is None:
            raise NotConnectedError("activemq is not running")
        return self._process.pid

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def settings(self, **changes: object) -> JmsSettings:
        values: dict[str, object] = {
            "name": "amq",
            "classpath": client_jars(),
            "factory": FACTORY,
            "urls": (self.url,),
            "connect_timeout": PATIENCE,
        }
        return JmsSettings(**(values | changes))  # type: ignore[arg-type]  # of any setting's type

    def wipe(self) -> None:
        """Let it come back without anything that it had."""
        self.kill()
        for each in [*self.folder.rglob("KahaDB")]:
            rmtree(each)
        self.start()

    def freeze(self) -> None:
        """Suspend the process; its connections stay open without answers."""
        if self._process is not None:
            suspend(self._process)

    def thaw(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def running(folder: Path, java_options: Sequence[str] = ()) -> Iterator[ActiveMq]:
    broker = ActiveMq(folder)
    broker.java_options = java_options
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
