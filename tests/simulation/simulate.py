"""One run of a plan in an empty world, with the stand-ins in place."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

import gateway.runtime.gateway  # noqa: F401  # its modules must be loaded before they are patched
from gateway.archive import durable, layout
from gateway.archive.journal import local_head
from gateway.archive.journal.rolling import RollingJournal
from gateway.endpoints import registry
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.errors import SpoolError
from gateway.file_lock import FileLock
from gateway.runtime.outbound import spool_db
from tests.simulation import own_sinks
from tests.simulation.books import Finding
from tests.simulation.disk import (
    SimulatedRollingJournal,
    simulated_content,
    simulated_end,
    simulated_journals,
)
from tests.simulation.exactly_once import failing_encoder
from tests.simulation.installing import installed
from tests.simulation.plan import Plan
from tests.simulation.spool_files import SQLITE, SimulatedFileLock, SpoolPath, open_file
from tests.simulation.world import World, limits


@dataclass(slots=True)
class Result:
    """The findings of a run, its log, and how often each kind of event occurred."""

    plan: Plan
    findings: list[Finding]
    log: list[str]
    coverage: Counter[str]
    seconds: float  # simulated
    steps: int

    @property
    def rules(self) -> set[str]:
        return {each.rule for each in self.findings}


class _LogWatch(logging.Handler):
    """Reports faults that the product logs and survives, and traces its log."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        """Leave out the records of threads that an earlier test left."""
        return record.thread == self._thread

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._world.log("log", f"{record.levelname.lower()}: {text}")
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, SpoolError) and self._world.has_damaged_spool():
            return  # the log says so
        expected = any(each.kind == "driver-fault" for each in self._world.plan.faults)
        if record.exc_info and not ("driver" in text and expected):
            self._world.books.report("internal-error", f"{text}: {record.exc_info[1]!r}")


class _Secrets(SimpleNamespace):
    """Digits that one seed always gives."""

    def __init__(self, seed: int) -> None:
        random = Random(f"secrets {seed}")  # noqa: S311  # no secret
        super().__init__(token_hex=lambda size: random.randbytes(size).hex())


def simulate(
    plan: Plan, *, trace: bool = False, at_end: Callable[[World], None] = lambda _: None
) -> Result:
    """Run a plan from an empty world and return what was found.

    `trace` logs the product's log. `at_end` sees the world before its folder is removed.
    """
    memory = "/dev/shm"  # noqa: S108  # a folder in memory, where there is one
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    logger = logging.getLogger("gateway")
    level, propagate = logger.level, logger.propagate
    world = World(plan, folder)
    watch = _LogWatch(world)
    logger.setLevel(logging.INFO if trace else logging.ERROR)
    logger.propagate = False
    logger.addHandler(watch)
    try:
        unwritable = [each.payload for each in plan.faults if each.kind == "unwritable"]
        replaced: dict[int, object] = {
            **own_sinks.replacements(world.connect, unwritable),
            id(secrets): _Secrets(plan.seed),
            id(sqlite3): SQLITE,
            id(FileLock): SimulatedFileLock,
            id(Path): SpoolPath,
            id(PublishEncoder): failing_encoder(unwritable),
            id(RollingJournal): SimulatedRollingJournal,
            id(local_head.last_end): simulated_end,
            id(layout.journals): simulated_journals,
            id(durable.read_regular): simulated_content,
            id(registry.make_source): world.make_source,
            id(registry.make_sink): world.make_sink,
        }
        with (
            patch.object(spool_db, "open", open_file, create=True),
            installed(world.scheduler, replaced, limits(plan)),
        ):
            try:
                world.run()
            finally:
                for each in world.gateways.values():
                    each.wanted = False
                    if each.process is not None:
                        world.scheduler.kill(each.process)
                        each.disk.crash(lambda: 0.0)
                world.scheduler.kill(world.outside)
        at_end(world)
        run, log = world.scheduler, world.log
        return Result(plan, world.books.findings, log.lines, log.coverage, run.now, run.steps)
    finally:
        logger.removeHandler(watch)
        logger.setLevel(level)
        logger.propagate = propagate
        shutil.rmtree(folder, ignore_errors=True)
