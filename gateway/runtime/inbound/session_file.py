"""The facts of its sources that a gateway needs after a restart, in a file.

Subscriptions that brokers keep, places in streams, and whether messages were unsettled:

    FOLDER/<writer>.sessions     JSON: subscriptions by session, those of all others, a checksum

After damage the others are null: nothing is known of a session until it is saved again. The folder
is that of the journals, or that of the spool without an archive.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from zlib import crc32

from gateway.archive.durable import make_folders, read_regular, replace_text

T = TypeVar("T")
DAMAGE: Final = (LookupError, ValueError, TypeError, OverflowError, RecursionError)
log = logging.getLogger(__name__)


class SessionFile:
    """A store of subscriptions (`endpoints.continuity`).

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._sessions: dict[str, list[str]] = {}
        self._others: list[str] | None = []  # of a session that is not in the file
        self._is_written = True
        self._read()

    def load(self, session: str, parse: Callable[[str], T]) -> Sequence[T] | None:
        with self._lock:
            saved = self._sessions.get(session, self._others)
            try:
                return None if saved is None else [parse(each) for each in saved]
            except DAMAGE as error:  # of another version
                self._say_damaged(error)
                return None

    def save(self, session: str, subscriptions: Collection[str]) -> None:
        wanted = sorted(subscriptions)
        with self._lock:
            if self._is_written and self._sessions.get(session, self._others) == wanted:
                return
            self._sessions[session] = wanted
            if wanted == self._others:
                self._sessions.pop(session)
            try:
                self._is_written = False  # a full disk is tried again
                make_folders(self._path.parent)
                replace_text(self._path, _packed([self._sessions, self._others]))
                self._is_written = True
            except OSError as error:
                log.warning("%s: cannot be written: %s", self._path, error.strerror)

    def _read(self) -> None:
        try:
            self._sessions, self._others = _unpacked(read_regular(self._path))
        except FileNotFoundError:
            pass
        except (OSError, *DAMAGE) as error:
            self._others = None
            self._say_damaged(error)

    def _say_damaged(self, error: Exception) -> None:
        log.warning(
            "%s: is damaged (%s): what may come twice is marked as redelivered, and subscriptions"
            " of the last run may stay at a broker", self._path, error,
        )  # fmt: skip


def _packed(content: Any) -> str:  # noqa: ANN401  # values of JSON
    return json.dumps({"crc32": crc32(json.dumps(content).encode()), "content": content})


def _unpacked(data: bytes) -> Any:  # noqa: ANN401  # values of JSON
    content = json.loads(data)["content"]
    if json.loads(_packed(content)) != json.loads(data):
        raise ValueError("its checksum does not fit")
    return content
