"""The memories of the sources of a gateway, in one file, or beside the lease of a pair.

    FOLDER/<writer>.memory     JSON: the facts of each source by its role, and a checksum

A role is kind and name of an endpoint, and the name of a tap: another spelling of an address finds
its memory. Written: as a whole, whenever a fact changes. Read: when the gateway starts, in a pair
by its new holder. After damage nothing is known of any role until that is written again; nor is it
of a new role beside the memory of an endpoint that the configuration no longer has: it may be the
same one, renamed without `was`. The folder is that of the journals, or that of the spool without an
archive; without any, memories end with the process.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from gateway.archive.durable import make_folders, read_regular, replace_text
from gateway.endpoints.source_memory import DAMAGE, Facts
from gateway.errors import GatewayError

log = logging.getLogger(__name__)


class MemoryPlace(Protocol):
    """The place of one text. `read` and `write` raise OSError or GatewayError with the reason."""

    def read(self) -> str | None:
        """Return the text; None when none was ever written."""

    def write(self, text: str) -> None:
        """Replace the text; it is durable when this returns."""


class MemoryFile:
    """A place in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> str | None:
        try:
            return read_regular(self._path).decode()
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        make_folders(self._path.parent)
        replace_text(self._path, text)


class SourceMemories:
    """A store of memories (`endpoints.source_memory`); `roles` are those of the configuration.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, place: MemoryPlace | None, roles: Collection[str] = ()) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._is_damaged = False
        self._is_written = True
        self._memories: dict[str, Facts] = {}
        self._told: set[str] = set()  # roles that began beside one of another name
        self._read()
        self._strangers = sorted(self._memories.keys() - set(roles))

    def load(self, role: str, was: str = "") -> Facts | None:
        with self._lock:
            found = self._memories.get(role)
            if found is None and was:
                found = self._memories.get(was)
            if found is not None or self._is_damaged:
                return found
            kind = role.partition(" ")[0]
            if others := [each for each in self._strangers if each.partition(" ")[0] == kind]:
                self._say_renamed(role, others)
                return None
            return {}

    def save(self, role: str, facts: Facts) -> None:
        with self._lock:
            if self._is_written and self._memories.get(role) == facts:
                return
            self._memories[role] = dict(facts)
            if self._place is None:
                return
            try:
                self._is_written = False  # a full disk is tried again
                self._place.write(_packed(self._memories))
                self._is_written = True
            except OSError as error:
                log.warning("%s: cannot be written: %s", self._place, error.strerror or error)
            except GatewayError as error:
                log.warning("%s: cannot be written: %s", self._place, error)

    def say_damaged(self, role: str, error: Exception) -> None:
        log.warning(
            "%s: the memory of %s is damaged (%s: %s): what may come twice is marked as"
            " redelivered, and subscriptions of the last run may stay at a broker",
            self._place, role, type(error).__name__, error,
        )  # fmt: skip

    def _say_renamed(self, role: str, others: Collection[str]) -> None:
        if role in self._told:
            return
        self._told.add(role)
        names = [each.partition(" ")[2] for each in others]
        log.warning(
            "endpoint %s has no memory of its broker, and there is one of %s, which the"
            " configuration does not have: what may come twice is marked as redelivered;"
            " if it was renamed, write `was: %s` at the endpoint",
            role.partition(" ")[2], ", ".join(names), names[0],
        )  # fmt: skip

    def _read(self) -> None:
        if self._place is None:
            return
        try:
            text = self._place.read()
            if text is not None:
                self._memories = _unpacked(text)
        except (OSError, GatewayError, *DAMAGE) as error:
            self._is_damaged = True
            self.say_damaged("every source", error)


def _packed(memories: Mapping[str, Facts]) -> str:
    content = json.dumps(memories, sort_keys=True)
    return json.dumps({"crc32": crc32(content.encode()), "memories": memories}, sort_keys=True)


def _unpacked(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found["memories"], dict):
        raise ValueError("it has no memories")  # noqa: TRY004  # damage, and no fault of ours
    memories = {str(role): dict(facts) for role, facts in found["memories"].items()}
    if json.loads(_packed(memories)) != found:
        raise ValueError("its checksum does not fit")
    return memories
