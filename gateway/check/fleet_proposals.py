"""The `broker_id` to write at endpoints without one: one text for all that may be at one broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from gateway.check.fleet_brokers import Brokers, FleetEnd, may_be_one
from gateway.endpoints.broker_names import PLACEHOLDER
from gateway.endpoints.registry import find_kind

MAX_NAMED = 3  # endpoints that a hint names

Group = tuple[FleetEnd, ...]  # endpoints that are joined, also by their addresses


@dataclass(frozen=True)
class Proposals:
    """The texts to write at the endpoints of a fleet.

    A group with a local address that may be at the broker of an earlier such group has no text of
    its own. Groups with a `broker_id` come first, then those whose address is not a local one, then
    the others in the order of the files.
    """

    brokers: Brokers

    def hint(self, end: FleetEnd) -> str:
        """Return the `broker_id` to write, and where else."""
        group = self._group(end)
        joined = [each.label for each in group if each.gateway is not end.gateway]
        as_at = f", as at {some_names(joined)} if they are one broker" if joined else ""
        choices, text = self._choices(end), self._texts.get(group, "")
        if not text:
            return f"write {choices}, else another one{as_at}{_note(choices)}"
        but = f"; but {choices}" if choices else ""
        return f"write {text}{as_at}{_note(text)}{self._same(end)}{but}"

    def _group(self, end: FleetEnd) -> Group:
        return self._groups[self.brokers.assumed[end]]

    @cached_property
    def _groups(self) -> Mapping[str, Group]:
        found: defaultdict[str, list[FleetEnd]] = defaultdict(list)
        for end in self.brokers.ends:
            if not find_kind(end.settings).in_process:
                found[self.brokers.assumed[end]].append(end)
        return {key: tuple(group) for key, group in found.items()}

    @cached_property
    def _texts(self) -> Mapping[Group, str]:
        """The texts of groups that have one of their own, in their order."""
        found: dict[Group, str] = {}
        for group in sorted(self._groups.values(), key=self._rank):
            known = self._known(group)
            local = [other for other in found if _is_local(other)]
            if known or not _is_local(group) or not any(_meet(group, other) for other in local):
                ids = known or [group[0].proposed_id]
                found[group] = " or ".join(f"`broker_id: {each}`" for each in ids)
        return found

    def _known(self, group: Group) -> list[str]:
        ids = {each.broker_id for each in group} - {""}
        at = {each for end in group for address in end.addresses for each in self._ids_at(address)}
        return sorted(ids or at)

    def _ids_at(self, address: str) -> frozenset[str]:
        return self.brokers.ids_at[address]

    def _rank(self, group: Group) -> tuple[bool, bool]:
        return not self._known(group), _is_local(group)

    def _earlier(self, group: Group) -> list[Group]:
        """Return the groups with a text that comes before that of `group`, local ones first."""
        found = takewhile(lambda each: each != group, self._texts)
        return sorted(found, key=lambda each: not _is_local(each))

    def _choices(self, end: FleetEnd) -> str:
        """Return the texts of earlier groups that may be at the broker of `end`."""
        found: defaultdict[str, list[FleetEnd]] = defaultdict(list)
        group = self._group(end)
        for other in self._earlier(group):
            if _meet(group, other):
                found[self._texts[other]] += _meeting(end, other) or other[:1]
        texts = [f"{text} if this is the broker of {_ends(at)}" for text, at in found.items()]
        return ", ".join(texts[:MAX_NAMED])

    def _same(self, end: FleetEnd) -> str:
        """Return where the text of `end` is to be written if it is the same broker."""
        group = self._group(end)
        earlier = self._earlier(group)
        others = [each for each in self._groups.values() if each not in earlier]
        perhaps = [each for other in others if _meet(group, other) for each in _meeting(end, other)]
        if not perhaps:
            return ""
        return f"; and the same at {_ends(perhaps)} if that is this broker, else another one there"


def _is_local(group: Group) -> bool:
    return any(each.has_own_address for each in group)


def _meet(one: Group, other: Group) -> bool:
    """Return whether two groups may be at one broker; a file tells its own addresses apart."""
    if one is other or {each.gateway for each in one} & {each.gateway for each in other}:
        return False
    return any(_meeting(each, other) for each in one)


def _meeting(end: FleetEnd, others: Sequence[FleetEnd]) -> list[FleetEnd]:
    return [each for each in others if may_be_one(end, each)]


def _note(text: str) -> str:
    return f" ({PLACEHOLDER}: a name of this site)" if f" {PLACEHOLDER}/" in text else ""


def _ends(ends: Sequence[FleetEnd]) -> str:
    shown = [f"{each.label!r} ({each.address})" for each in ends[:MAX_NAMED]]
    return " or ".join([*shown, *(["others"] if ends[MAX_NAMED:] else [])])


def some_names(labels: Sequence[str]) -> str:
    """Return the first names of several."""
    shown = [repr(each) for each in labels[:MAX_NAMED]]
    return " and ".join([*shown, *(["others"] if labels[MAX_NAMED:] else [])])
