"""A gateway without a converter: each start of one takes longer than most tests."""

from __future__ import annotations

from pathlib import Path


class NoConverter:
    """Converts nothing: the tests do it, and fail at one of its steps. Mutable as the real one."""

    busy, held_bytes, waiting, failed, is_awaited = False, 0, 0, 0, False

    def __init__(self, *_: object) -> None: ...

    def add(self, _: object) -> None: ...

    def poll(self) -> None: ...

    def start_without_journals(self) -> None: ...

    def finish(self, _: float) -> list[Path]:
        return []
