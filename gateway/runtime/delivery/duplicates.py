"""Recognition of duplicates by the identity that their source gives them.

A duplicate also has the name and the payload of the earlier message: publishers can write an
identity, also one that another message will have, so an identity alone must not drop a message.
For an endpoint with `echo_window`, name and payload alone are the identity for that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

from gateway.model.message import Message
from gateway.runtime.delivery.earlier_batch import ConnectionPart, EarlierBatch
from gateway.runtime.delivery.rows import fingerprint

MAX_SIZE: Final = 32 << 20  # bytes of the identities of a source endpoint
EVICTED_SIZE: Final = MAX_SIZE // 50  # bytes of the identities that are evicted together
FOR_EVER: Final = float("inf")  # seconds
_NO_CONNECTION: Final = ConnectionPart(-1)
_OVERHEAD: Final = 320  # bytes of an identity beside the characters of its texts

Identity: TypeAlias = tuple[str, str, bytes]  # name, id of the message or "", payload hash


def copy_id(endpoint: str, identity: str, message: Message) -> str:
    """The property `gateway_id` of a copy whose source gave its message an identity.

    It is the same whenever the source delivers the message again, also to a later run of the
    gateway, and no publisher can give it to another message: name and payload are part of it. Its
    prefix tells it from the id of a row of the archive.
    """
    size, digest = fingerprint(message.payload)
    facts = "\0".join((endpoint, identity, message.address, str(size)))
    whole = blake2b(facts.encode("utf-8", "surrogatepass") + digest, digest_size=16)
    return f"s-{whole.hexdigest()}"


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """A batch that an earlier run has settled."""

    arrived: float = 0.0
    part: ConnectionPart = _NO_CONNECTION

    def is_over_for(self, later: EarlierBatch) -> bool:
        return later.part.after_silence

    def when_settled(self, callback: Callable[[], None]) -> None:
        callback()


class DuplicateFilter:
    """The latest identities of one source endpoint, with the batches that had them first.

    Mutable: owned by the source's thread.
    """

    def __init__(self) -> None:
        self._batches: dict[Identity, EarlierBatch] = {}
        self._size = 0  # bytes

    def remember(self, identities: Iterable[Identity]) -> None:
        """Add identities that an earlier run has delivered and recorded."""
        batch = SettledBatch()
        for identity in identities:
            self.find_or_add(identity, batch)

    def add_new(self, identities: Sequence[Identity], batch: EarlierBatch) -> bool:
        """Add the identities of a batch if no batch had one of them, and return whether."""
        new = dict.fromkeys(identities, batch)
        if len(new) < len(identities) or not self._batches.keys().isdisjoint(new):
            return False
        self._batches.update(new)
        self._grow(sum(map(_size, identities)))
        return True

    def find_or_add(
        self, identity: Identity, batch: EarlierBatch, seconds: float = FOR_EVER
    ) -> EarlierBatch | None:
        """The batch that had `identity` in the last `seconds`; if there is none, add this batch.

        Without a time, it takes the place of one that does not come again: what does is a copy of
        this one.
        """
        found = self._batches.get(identity)
        if found is not None:
            if batch.arrived - found.arrived <= seconds:
                if seconds == FOR_EVER and found.is_over_for(batch):
                    self._batches[identity] = batch
                return found
            del self._batches[identity]
            self._batches[identity] = batch
        else:
            self._batches[identity] = batch
            self._grow(_size(identity))
        return None

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size >= MAX_SIZE + EVICTED_SIZE:
            self._evict()

    def _evict(self) -> None:
        """Drop the oldest identities, many at once.

        A search for the first entry of a dict skips every deleted one, so single evictions would
        be slow.
        """
        oldest: list[Identity] = []
        for identity in self._batches:
            if self._size <= MAX_SIZE:
                break
            self._size -= _size(identity)
            oldest.append(identity)
        for identity in oldest:
            del self._batches[identity]


def _size(identity: Identity) -> int:
    """Return about the bytes of a remembered identity; a character takes at most four."""
    return _OVERHEAD + 4 * (len(identity[0]) + len(identity[1]))
