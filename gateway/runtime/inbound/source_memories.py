"""The memories of the sources of a gateway, in one file, or beside the lease of a pair.

    FOLDER/<writer>.memory     JSON: the gateway, the facts of each source by its role, a checksum

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
    """A place in a file; `earlier` has the text of a gateway that kept it there."""

    def __init__(self, path: Path, earlier: Path | None = None) -> None:
        self._path, self._earlier = path, earlier

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> str | None:
        for path in filter(None, (self._path, self._earlier)):
            try:
                return read_regular(path).decode()
            except FileNotFoundError:
                if path.is_symlink():
                    raise
        return None

    def write(self, text: str) -> None:
        make_folders(self._path.parent)
        replace_text(self._path, text)


class SourceMemories:
    """A store of the memories of a gateway (`endpoints.source_memory`).

    `roles` are those of its configuration. Memories of another gateway are damage here, and so is
    the lack of any where the gateway ran before.
    Thread-safe: guarded by self._lock.
    """

    def __init__(
        self,
        place: MemoryPlace | None,
        roles: Collection[str] = (),
        gateway: str = "",
        *,
        ran_before: bool = False,
    ) -> None:
        self._place, self._gateway = place, gateway
        self._lock = threading.Lock()
        self._is_damaged = False
        self._is_written = True
        self._memories: dict[str, Facts] = {}
        self._told: set[str] = set()  # roles that began beside one of another name
        self._strangers: list[str] = []  # roles that the configuration does not have
        self._read(ran_before=ran_before)
        self.use_roles(roles)

    def use_roles(self, roles: Collection[str]) -> None:
        """Take `roles` for those of the configuration, from a start or a reload on."""
        with self._lock:
            self._strangers = sorted(self._memories.keys() - set(roles))

    def load(self, role: str, was: str = "") -> Facts | None:
        with self._lock:
            found = self._memories.get(role)
            if found is None and was:
                found = self._memories.get(was)
                if found is None and self._place is not None:
                    self._say_once(
                        role,
                        "endpoint %s: `was` names no endpoint that has a memory; %s",
                        role.partition(" ")[2], self._names_of(self._strangers),
                    )  # fmt: skip
            if found is not None or self._is_damaged:
                return found
            if others := self._of_its_kind(role):
                self._say_once(
                    role,
                    "endpoint %s has no memory of its broker; %s: what may come twice is marked as"
                    " redelivered; if it was renamed, write `was: NAME` at the endpoint, and what"
                    " waits at the broker is read",
                    role.partition(" ")[2], self._names_of(others),
                )  # fmt: skip
                return None
            return {}

    def earlier_names(self, role: str, was: str = "") -> str:
        """Return the endpoints that this one may have been, "" for none or where it is known."""
        with self._lock:
            if not self._memories.keys().isdisjoint({role, was}):
                return ""
            return ", ".join(each.partition(" ")[2] for each in self._of_its_kind(role))

    def _of_its_kind(self, role: str) -> list[str]:
        kind = role.partition(" ")[0]
        return [each for each in self._strangers if each.partition(" ")[0] == kind]

    def save(self, role: str, facts: Facts) -> None:
        with self._lock:
            if self._is_written and self._memories.get(role) == facts:
                return
            self._memories[role] = dict(facts)
            self._write()

    def _write(self) -> None:
        if self._place is None:
            return
        try:
            self._is_written = False  # a full disk is tried again
            self._place.write(_packed(self._memories, self._gateway))
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

    def _say_once(self, role: str, text: str, *values: str) -> None:
        if role not in self._told:
            self._told.add(role)
            log.warning(text, *values)

    @staticmethod
    def _names_of(roles: Collection[str]) -> str:
        names = ", ".join(each.partition(" ")[2] for each in roles)
        return f"those that the configuration does not have are {names or 'none'}"

    def _read(self, *, ran_before: bool) -> None:
        if self._place is None:
            return
        try:
            text = self._place.read()
            if text is not None:
                self._memories = _unpacked(text, self._gateway)
            elif ran_before:
                raise ValueError("it is absent, and the archive is that of an earlier run")
            else:
                self._write()  # so that its lack tells of a loss from now on
        except (OSError, GatewayError, *DAMAGE) as error:
            self._is_damaged = True
            self.say_damaged("every source", error)


def _packed(memories: Mapping[str, Facts], gateway: str) -> str:
    content = {"gateway": gateway, "memories": memories}
    checksum = crc32(json.dumps(content, sort_keys=True).encode())
    return json.dumps({"crc32": checksum, **content}, sort_keys=True)


def _unpacked(text: str, gateway: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found["memories"], dict):
        raise ValueError("it has no memories")  # noqa: TRY004  # damage, and no fault of ours
    memories = {str(role): dict(facts) for role, facts in found["memories"].items()}
    if found["gateway"] != gateway:
        raise ValueError(f"it is that of gateway {found['gateway']!r}")
    if json.loads(_packed(memories, gateway)) != found:
        raise ValueError("its checksum does not fit")
    return memories
