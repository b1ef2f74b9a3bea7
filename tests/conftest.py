"""Fixtures and order of the whole suite: Hypothesis profiles, brokers, one Spark session."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from itertools import chain
from math import gcd
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from gateway.archive.journal import rolling
from gateway.endpoints.memory import drop_brokers
from tests.archive.no_converter import NoConverter

pytest_plugins = [
    "tests.brokers.activemq",
    "tests.brokers.kafka_server",
    "tests.brokers.mosquitto",
    "tests.brokers.nats_server",
    "tests.brokers.rabbitmq_server",
    "tests.archive.bucket",
    "tests.chromium",
    "tests.endpoints.proxies",
    "tests.night.reconcile.sparking",
]

settings.register_profile(
    "default", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("short", settings.get_profile("default"), max_examples=10)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A terminated run stops the services that it started, as an interrupted one does.
signal.signal(signal.SIGTERM, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
SHARED = {  # servers that start slowly, and texts of the files whose tests share them
    "spark": ("mark.spark",),
    "rabbitmq": (": Vhost", "tests.endpoints.systems import", "tests.hostile.wires import",
                 "tests.conformance.bridged import", "rabbitmq_4"),
    "activemq": (": ActiveMq", 'getfixturevalue("activemq")'),
}  # fmt: skip
SLOWEST = (  # files that begin first, so that no worker ends long after the others
    "tests/night/reconcile/", "tests/chaos/", "tests/brokers/test_solace",
    "tests/brokers/test_delivery", "tests/test_docs_commands", "tests/conformance/",
    "tests/brokers/", "tests/trial/", "tests/archive/", "tests/night/",
    "tests/runtime/", "tests/proofs/", "tests/web/",
)  # fmt: skip

NOT_DAILY = ("nightly", "chaos", "skip")
SHARES = {  # of the rows of a table, one in so many runs with every change; at night all do
    "tests/conformance/test_sink_events": 45,
    "tests/hostile/": 8, "tests/conformance/": 9, "tests/brokers/": 9, "tests/endpoints/": 9,
    "tests/night/": 9, "tests/runtime/": 9, "tests/cli/": 9, "tests/proofs/": 3, "tests/web/": 9,
    "tests/chaos/": 9, "tests/extension/": 9, "tests/archive/": 4, "tests/trial/": 4,
    "tests/test_docs_commands": 3, "tests/tutorials/": 3,
}  # fmt: skip


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker whole files, and one of them all that share slow servers."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return shared_server(file) or file

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what a worker that died had left to others, without the test that killed it.

        The inherited method gives that test once more, and each file that is done: then the new
        worker waits for ever, and so does the run.
        """
        files = self.assigned_work.pop(node)
        left = [
            (file, test)
            for file, tests in files.items()
            for test, done in tests.items()
            if not done
        ]
        for file, test in left[1:]:
            self.workqueue.setdefault(file, {})[test] = False
        for other in self.assigned_work:
            self._reschedule(other)
        return left[0][1] if left else None

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give another file after one of a single test: a worker waits for a second test."""
        super()._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()
        elif self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Keep the collector of garbage from the tests themselves: thousands of objects that stay."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure of a worker at once: a run that is killed later has told it."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ and hasattr(report, "node"):
        sys.stdout.write(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}\n")
        sys.stdout.flush()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have measured."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(str(value))


@pytest.hookimpl(tryfirst=True)  # marks come before the choice of `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not any(map(item.get_closest_marker, NOT_DAILY)):
            tables[item.nodeid.partition("[")[0]].append(item)
    for table, rows in tables.items():
        share = next((SHARES[part] for part in SHARES if table.startswith(part)), 1)
        for item in left_to_the_night(rows, share):
            item.add_marker(pytest.mark.nightly)
    items.sort(key=lambda item: rank(item.nodeid.partition("::")[0]))


def left_to_the_night(rows: Sequence[pytest.Item], share: int) -> list[pytest.Item]:
    """Return the rows of a table but its first, and one in `share` by their names.

    Each value that several rows have, such as a kind of endpoint or a fault, is in one that stays,
    which is one of a smaller share where there is any.
    """
    values = {row: row_values(row) for row in rows}
    several = {value for value, times in Counter(chain(*values.values())).items() if times > 1}
    places = {row: crc32(row.nodeid.encode()) for row in rows}
    left: list[pytest.Item] = []
    several -= values[rows[0]]
    for row in sorted(rows[1:], key=lambda row: (-gcd(places[row], share), places[row])):
        if places[row] % share and not several & values[row]:
            left.append(row)
        several -= values[row]
    return left


def row_values(row: pytest.Item) -> set[tuple[str, object]]:
    """Return the values of a row by the names of its parameters; other objects by identity."""
    parameters = row.callspec.params if hasattr(row, "callspec") else {}
    return {
        (name, value if isinstance(value, str | int | None) else id(value))
        for name, value in parameters.items()
    }


def rank(file: str) -> int:
    """Return the place of a file in the order of the run; Spark and other servers go first."""
    if server := shared_server(file):
        return [*SHARED].index(server) - len(SHARED)
    return next((at for at, part in enumerate(SLOWEST) if file.startswith(part)), len(SLOWEST))


@cache
def shared_server(file: str) -> str:
    """Return the name of the servers that the tests of a file share with others."""
    text = (ROOT / file).read_text("utf-8")
    return next((name for name, marks in SHARED.items() if any(m in text for m in marks)), "")


@pytest.fixture(autouse=True, scope="module")
def untouched_log() -> Iterator[None]:
    """Give the log of the product back as it was: tests may set it up as a command does."""
    root = logging.getLogger("gateway")
    handlers, level, propagate = root.handlers[:], root.level, root.propagate
    resort = logging.lastResort
    yield
    root.handlers[:], root.propagate = handlers, propagate
    root.setLevel(level)  # an assignment leaves what the loggers below remember of the level
    logging.lastResort = resort


@pytest.fixture
def journals_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no converter; `archived` converts what is left."""
    monkeypatch.setattr(rolling, "Converter", NoConverter)


@pytest.fixture(autouse=True)
def no_memory_broker_left() -> Iterator[None]:
    """Drop the brokers in memory that tests have made: a name has one dialect in a process."""
    yield
    drop_brokers()
