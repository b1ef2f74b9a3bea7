"""The memories of the sources of a gateway, in one file, or beside the lease of a pair.

    FOLDER/<writer>.memory     JSON: the gateway, the facts of each source by its role, the roles
                               that were removed, a checksum

A role is kind and name of an endpoint, and the name of a tap; of an endpoint with `was`, that name:
neither a new name nor another spelling of an address loses the memory. Written: as a whole,
whenever a fact changes. Read: when the gateway starts, in a pair by its new holder. After damage
nothing is known of any role until that is written again.

An endpoint whose `was` was written late, or was mistyped before, has two memories: it goes on with
that of the earlier name, and what it read meanwhile may come again (`endpoints.second_reading`).

An endpoint that leaves the configuration is *missing*. It may have another name now, without `was`,
so nothing is known of a new source of its kind. It is *removed* as soon as each source of its kind
has a memory: later ones are new. Its memory stays, for an endpoint of its name that comes back.

The folder is that of the journals, or that of the spool without an archive; without any, memories
end with the process.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol
from zlib import crc32

from gateway.archive.durable import make_folders, read_regular, replace_text
from gateway.endpoints.source_memory import BESIDE, DAMAGE, Facts
from gateway.errors import GatewayError, nearest

log = logging.getLogger(__name__)

READ_AS: Final = "read as"  # a fact: the role by the present name of an endpoint with `was`
BEGINS: Final = (
    "endpoint {} has no memory of its broker; those that left the configuration are {}: what may"
    " come twice is marked as redelivered; if it was renamed, write `was: NAME` at the endpoint,"
    " and what waits at the broker is read"
)
WAS_NOTHING: Final = (
    "endpoint {}: `was: {}` names no endpoint that this gateway remembers; {} (it remembers"
    " {}): the source begins without a memory, and what waits under another name is not read"
)
READ_BEFORE: Final = (
    "endpoint {} goes on as {}, and was read under another name before: messages that come until it"
    " falls quiet are marked as redelivered; `gateway withdraw` lists what it made under that name"
)


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

    Memories of another gateway are damage here, and so is the lack of any where the gateway ran
    before.
    Thread-safe: guarded by self._lock.
    """

    def __init__(
        self,
        place: MemoryPlace | None,
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
        self._removed: set[str] = set()
        self._missing: list[str] = []
        self._sources: set[str] = set()
        self._own: Mapping[str, str] = {}
        self._read(ran_before=ran_before)

    def use_roles(
        self,
        roles: Collection[str],
        sources: Collection[str],
        own: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take these for those of the configuration, and for those of its sources.

        `own` has the role that an endpoint with `was` would have by its present name. At a start,
        and at each reload.
        """
        with self._lock:
            self._sources, self._own = {*sources}, own
            left = self._memories.keys() - {*roles, *own.values()}
            self._missing = sorted(left - self._removed)
            before, self._removed = self._removed, self._removed & left
            self._note_removed()
            if self._removed != before:
                self._write()

    def load(self, role: str) -> Facts | None:
        with self._lock:
            found = self._memories.get(role)
            if found is not None or self._is_damaged:
                return found
            others = self._of_its_kind(role)
            if role not in self._told and (warning := self._warning(role, others)):
                self._told.add(role)
                log.warning("%s", warning)
            return None if others else {}

    def _warning(self, role: str, others: Sequence[str]) -> str:
        """Return the text for an endpoint that begins beside memories of other names, or ""."""
        if role not in self._own:
            return BEGINS.format(_name_of(role), _listed(others)) if others else ""
        if not self._memories:
            return ""
        was, name = _name_of(role), _name_of(self._own[role])
        names = sorted(_name_of(each) for each in self._memories if " " not in _name_of(each))
        return WAS_NOTHING.format(name, was, nearest(was, names), ", ".join(names))

    def beside(self, role: str) -> str:
        with self._lock:
            own = self._own.get(role, "")
            others = {
                each: facts
                for each, facts in self._memories.items()
                if own and each != role and facts and own in {each, facts.get(READ_AS)}
            }
            if not others:
                return ""
            digest = f"{crc32(json.dumps(others, sort_keys=True).encode()):08x}"
            known = self._memories.get(role, {})
            if known and known.get(BESIDE) != digest and own not in self._told:
                self._told.add(own)
                log.warning("%s", READ_BEFORE.format(_name_of(own), _name_of(role)))
            return digest

    def earlier_names(self, role: str) -> str:
        """Return the endpoints that this one may have been, "" for none or where it is known."""
        with self._lock:
            if role in self._memories:
                return ""
            return _listed(self._of_its_kind(role))

    def _of_its_kind(self, role: str) -> list[str]:
        return [each for each in self._missing if _kind_of(each) == _kind_of(role)]

    def _note_removed(self) -> None:
        """Note the missing endpoints that none of the sources can be."""
        unknown = {_kind_of(each) for each in self._sources - self._memories.keys()}
        self._removed |= {each for each in self._missing if _kind_of(each) not in unknown}
        self._missing = [each for each in self._missing if each not in self._removed]

    def save(self, role: str, facts: Facts) -> None:
        with self._lock:
            if own := self._own.get(role):
                facts = {**facts, READ_AS: own}
            if self._is_written and self._memories.get(role) == facts:
                return
            self._memories[role] = dict(facts)
            self._note_removed()
            self._write()

    def _write(self) -> None:
        if self._place is None:
            return
        try:
            self._is_written = False  # a full disk is tried again
            self._place.write(_packed(self._memories, self._removed, self._gateway))
            self._is_written = True
        except OSError as error:
            log.warning("%s: cannot be written: %s", self._place, error.strerror or error)
        except GatewayError as error:
            log.warning("%s: cannot be written: %s", self._place, error)

    def say_damaged(self, role: str, error: Exception) -> None:
        log.warning(
            "%s: the memory of %s is damaged (%s: %s): what may come twice is marked as"
            " redelivered, and subscriptions of the last run may stay at a broker",
            self._place,
            role,
            type(error).__name__,
            error,
        )

    def _read(self, *, ran_before: bool) -> None:
        if self._place is None:
            return
        try:
            text = self._place.read()
            if text is not None:
                self._memories, self._removed = _unpacked(text, self._gateway)
            elif ran_before:
                raise ValueError("it is absent, and the archive is that of an earlier run")
            else:
                self._write()  # so that its lack tells of a loss from now on
        except (OSError, GatewayError, *DAMAGE) as error:
            self._is_damaged = True
            self.say_damaged("every source", error)


def read_memories(place: MemoryPlace, gateway: str) -> Mapping[str, Facts]:
    """Return the facts of each role, and change nothing; none where nothing was ever written.

    Raises:
        GatewayError: the memories cannot be read, or are damaged.
    """
    try:
        text = place.read()
        return {} if text is None else _unpacked(text, gateway)[0]
    except OSError as error:
        raise GatewayError(f"{place}: cannot be read: {error.strerror or error}") from error
    except DAMAGE as error:
        reason = f"is damaged: {error!r}; what the gateway made is not known"
        raise GatewayError(f"{place}: {reason}") from error


def _kind_of(role: str) -> str:
    return role.partition(" ")[0]


def _name_of(role: str) -> str:
    return role.partition(" ")[2]


def _listed(roles: Sequence[str]) -> str:
    return ", ".join(map(_name_of, roles))


def _packed(memories: Mapping[str, Facts], removed: Collection[str], gateway: str) -> str:
    content = {"gateway": gateway, "memories": memories, "removed": sorted(removed)}
    checksum = crc32(json.dumps(content, sort_keys=True).encode())
    return json.dumps({"crc32": checksum, **content}, sort_keys=True)


def _unpacked(text: str, gateway: str) -> tuple[dict[str, Any], set[str]]:
    found = json.loads(text)
    if not isinstance(found["memories"], dict):
        raise ValueError("it has no memories")  # noqa: TRY004  # damage, not a fault of the gateway
    memories = {str(role): dict(facts) for role, facts in found["memories"].items()}
    removed = {str(each) for each in found["removed"]}
    if found["gateway"] != gateway:
        raise ValueError(f"it is that of gateway {found['gateway']!r}")
    if json.loads(_packed(memories, removed, gateway)) != found:
        raise ValueError("its checksum does not fit")
    return memories, removed
