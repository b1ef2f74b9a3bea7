"""Which paths the messages of a batch may keep: the check of the proofs that came with them.

A message keeps its origin path if it equals the digest of its proof. Any other begins a new path;
only the marks that its source added stay, which are the source's own word. The count of hops goes
on with every proof, also of a message that equals no digest, so that no circle is endless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gateway.model.copy_proof import (
    DIGEST_AT,
    FIRST_END,
    HOPS_AT,
    MAX_HOPS,
    PROOF_SIZE,
    PROOF_SIZES,
    SourceMark,
    content_digest,
)
from gateway.model.message import Headers, Message
from gateway.routing.origin_path import BrokerAddress, GatewayIdentity
from gateway.routing.router import Router
from gateway.runtime.delivery.copy_paths import PathRules
from gateway.runtime.delivery.received_batch import ReceivedBatch

MAX_SEEN: Final = 10_000  # paths that were looked at for the address of a broker
_HOPS: Final = {f".{hops:02x}.": hops for hops in range(MAX_HOPS + 1)}  # as a proof spells them


class PathCheck:
    """The check of the messages of one source endpoint.

    Mutable: owned by the source's thread.
    """

    def __init__(self, gateway: GatewayIdentity, rules: PathRules) -> None:
        self._gateway, self._rules = gateway, rules
        self._seen: set[tuple[str, ...]] = set()  # paths
        self.same_addresses: set[BrokerAddress] = set()  # that another gateway reads, too

    def check(self, batch: ReceivedBatch, router: Router) -> None:
        """Take the path from each message that equals no digest, and note the hops of all."""
        messages = batch.messages
        read_paths(self._rules, batch, router.wire_names)
        firsts = batch.firsts
        origins = {
            each.headers.origin for each, first in zip(messages, firsts, strict=True) if first
        }
        for origin in origins - self._seen:
            self._look_for_same_broker(origin, router)
        if not all(firsts):
            batch.messages = begin_paths(messages, firsts)

    def _look_for_same_broker(self, origin: tuple[str, ...], router: Router) -> None:
        """Note the addresses of brokers in a path that are also addresses of brokers here."""
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        self._seen.add(origin)
        elsewhere = self._gateway.addresses_elsewhere(origin)
        self.same_addresses |= {each for each in router.addresses if each.hash in elsewhere}


def read_paths(rules: PathRules, batch: ReceivedBatch, names: Mapping[str, bytes]) -> None:
    """Set the columns of a batch; `names` has the canonical form of each name at its source."""
    firsts, hops_of = batch.firsts, batch.hops
    for position, (message, payload_hash) in enumerate(
        zip(batch.messages, batch.hashes, strict=True)
    ):
        text = message.proof
        hops = _HOPS.get(text[HOPS_AT:DIGEST_AT])
        if hops is None or len(text) not in PROOF_SIZES:
            continue
        hops_of[position] = hops
        name = names[message.address]
        if text[DIGEST_AT:PROOF_SIZE] == content_digest(name + payload_hash):
            firsts[position] = text[:FIRST_END]
            if rules.keys and rules.have_signed(message, name, payload_hash):
                batch.signed.add(position)


def begin_paths(messages: Sequence[Message], firsts: Sequence[str]) -> list[Message]:
    """Return the messages; those without a first id begin a path, with the source's marks alone.

    Messages with equal headers share the result.
    """
    begun: dict[int, Headers] = {}
    found: list[Message] = []
    for message, first in zip(messages, firsts, strict=True):
        headers = message.headers
        if not first and headers.origin:
            if id(headers) not in begun:
                begun[id(headers)] = headers.with_origin(_own_marks(headers.origin))
            found.append(replace(message, headers=begun[id(headers)]))
        else:
            found.append(message)
    return found


def _own_marks(origin: Sequence[str]) -> tuple[str, ...]:
    """Return the marks that the source itself added to a path."""
    return tuple(each for each in origin if isinstance(each, SourceMark))
