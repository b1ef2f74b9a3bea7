"""A process with an honest endpoint, in which hostile servers are tried one after the other."""

from __future__ import annotations

import logging
import re
import traceback
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, Self

from gateway.endpoints import tls
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.base import EndpointSettings
from tests.hostile.behaviours import Cost
from tests.hostile.neighbour import Neighbour
from tests.hostile.trials import TRIALS, source_of
from tests.waiting import PATIENCE

_SPAWN: Final = get_context("spawn")  # a process without the memory and the threads of the tests


@dataclass(frozen=True, slots=True)
class Finding:
    """The cost of a hostile server; `failure` is empty if the trial passed."""

    failure: str
    memory: int  # bytes at most
    lines: int  # in the log
    log: str
    tracebacks: int


class Victim:
    """The process. Mutable: until it is stopped."""

    def __init__(self, honest: EndpointSettings, pattern: str, address: str) -> None:
        self._pattern, self._address = pattern, address
        self._pipe, other = _SPAWN.Pipe()
        arguments = (other, honest, pattern, address)
        self._process = _SPAWN.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def ask(self, settings: EndpointSettings, cost: Cost) -> Finding:
        """Try a hostile server; fail if the process ends."""
        self._pipe.send((settings, cost))
        found = self._answer()
        assert isinstance(found, Finding)
        return found

    def seconds(self) -> list[float]:
        """End the neighbour, and return the seconds of each of its messages."""
        self._pipe.send(None)
        found = self._answer()
        assert isinstance(found, list)
        return found

    def _answer(self) -> object:
        assert self._pipe.poll(2 * PATIENCE), "the process does not answer"
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join(PATIENCE)
            raise AssertionError(f"the process ended: {self._process.exitcode}") from None


class _Log(logging.Handler):
    """Collects what is logged. Mutable: emptied for each trial."""

    def __init__(self) -> None:
        super().__init__()
        self.lines, self.tracebacks = list[str](), 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.tracebacks += bool(record.exc_info)


def _serve(pipe: Connection, honest: EndpointSettings, pattern: str, address: str) -> None:
    vars(tls)["PROBE_TIMEOUT"] = 0.2  # seconds: a hostile server answers no handshake
    log = _Log()
    logging.getLogger().addHandler(log)
    neighbour = Neighbour(source_of(honest, pattern), make_sink(honest), address)
    with neighbour.running():
        while (order := pipe.recv()) is not None:
            settings, cost = order
            log.lines, log.tracebacks, failure = [], 0, ""
            before = _reset_peak()
            try:
                TRIALS[cost](settings, pattern, address)
                neighbour.check()
            except BaseException:  # noqa: BLE001  # for the test
                failure = traceback.format_exc()
            text = "\n".join(log.lines)
            peak = _peak() - before
            pipe.send(Finding(failure, peak, len(log.lines), text[:100_000], log.tracebacks))
    pipe.send(neighbour.seconds)


def _reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the peak
    return _peak()


def _peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10
