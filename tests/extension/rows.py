"""The rows of the file bus in the tables of the tests: `pytest -p tests.extension.rows`.

The package of this folder must be installed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.endpoints.settings.base import EndpointSettings

pytest.register_assert_rewrite("tests.brokers")  # before they are imported: they are plugins

from tests import strategies  # noqa: E402
from tests.endpoints import systems as endpoints  # noqa: E402
from tests.hostile.behaviours import Cost, Hostile, HostileWire  # noqa: E402
from tests.hostile.wires import WIRES  # noqa: E402
from tests.systems import SYSTEMS, System  # noqa: E402


def _is_legal_name(name: str, made: bool) -> bool:
    del made
    return all(name.split(":")) and not set(name) & {"?", "\0"} and len(name.encode()) <= 512


def _is_legal_pattern(text: str) -> bool:
    *first, last = text.split(":")
    steps = [*first, *([] if last == "??" else [last])]
    return "\0" not in text and all(step and (step == "?" or "?" not in step) for step in steps)


def _selects(pattern: str, name: str) -> bool:
    wanted, steps = pattern.split(":"), name.split(":")
    if wanted[-1] == "??":
        wanted = wanted[:-1]
        steps = steps[: len(wanted)]
    return len(wanted) == len(steps) and all(
        one in ("?", other) for one, other in zip(wanted, steps, strict=True)
    )


def _file_bus(request: pytest.FixtureRequest) -> endpoints.System:
    folder = request.getfixturevalue("tmp_path")
    return endpoints.System(
        import_module("file_bus").Settings(path=str(folder / "bus.db")),
        spell=":".join,
        rest=lambda levels: ":".join((*levels, "??")),
        illegal="a:?:b",
        has_facts=False,
    )


def _run(script: str) -> Callable[[Path], None]:
    """Return a behaviour: SQL that makes the file of the bus."""

    def behave(path: Path) -> None:
        with closing(sqlite3.connect(path)) as file, file:
            file.executescript(script)

    return behave


@contextmanager
def _made(behave: Callable[[Path], object]) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        behave(Path(folder) / "bus.db")
        yield f"{folder}/bus.db"


def _bus(path: str) -> EndpointSettings:
    made: EndpointSettings = import_module("file_bus").Settings(path=path)
    return made


def _honest_bus(_request: pytest.FixtureRequest, stack: ExitStack) -> EndpointSettings:
    return _bus(f"{stack.enter_context(TemporaryDirectory())}/bus.db")


_FILLED = (
    "CREATE TABLE queues (queue, pattern);"
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, queue, name, payload, given);"
    "CREATE TRIGGER fill AFTER INSERT ON queues BEGIN INSERT INTO messages"
    " VALUES (NULL, NEW.queue, 't:x', {}, 0), (NULL, NEW.queue, 't:x', CAST('honest' AS BLOB), 0);"
    " END;"
)
WIRES.append(
    HostileWire(
        "filebus",
        "filebus",
        "t:??",
        "t:x",
        _bus,
        _honest_bus,
        [
            Hostile("no-database", lambda path: path.write_text("x" * 9_000), Cost.LOG_IN),
            Hostile("folder", Path.mkdir, Cost.LOG_IN),
            Hostile("other-columns", _run("CREATE TABLE queues (x)"), Cost.SOURCE),
            Hostile("empty", _run(_FILLED.format("zeroblob(0)")), Cost.NOTHING),
            Hostile("of-1-mib", _run(_FILLED.format("zeroblob(1048576)")), Cost.NOTHING),
        ],
        _made,
        fewest=5,
    )
)
SYSTEMS["filebus"] = System(
    "filebus", ":", "??", _is_legal_name, _is_legal_pattern, _selects,
    forbidden="?\0", empty_levels=False,
)  # fmt: skip
endpoints.SYSTEMS["filebus"] = _file_bus
strategies.PIECES += [":", "?", "%3A", "%3F"]
strategies.WILDCARDS += ["?", "??", "?a"]
