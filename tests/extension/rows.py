"""The rows of the file bus in the tables of the tests: `pytest -p tests.extension.rows`.

The package of this folder must be installed.
"""

from __future__ import annotations

from importlib import import_module

import pytest

pytest.register_assert_rewrite("tests.brokers")  # before they are imported: they are plugins

from tests import strategies  # noqa: E402
from tests.endpoints import systems as endpoints  # noqa: E402
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


SYSTEMS["filebus"] = System(
    "filebus", ":", "??", _is_legal_name, _is_legal_pattern, _selects,
    forbidden="?\0", empty_levels=False,
)  # fmt: skip
endpoints.SYSTEMS["filebus"] = _file_bus
strategies.PIECES += [":", "?", "%3A", "%3F"]
strategies.WILDCARDS += ["?", "??", "?a"]
