"""Bridges as routes from the server back to itself; what they carry is decided already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.imports.document import Names, Rule, Send
from gateway.imports.ems.config_files import TOPIC, Sent
from gateway.imports.ems.selection import Carried, address, is_wild
from gateway.imports.ems.transports import Ties
from gateway.imports.yaml_text import prose

SERVER = "ems"  # the name of its endpoint


def rules_of(carried: Sequence[Carried], ties: Ties, secrets: Sequence[str]) -> tuple[Rule, ...]:
    names = Names()
    pairs = {(each.bridge.name, sent.kind, sent.name) for each in carried for sent in each.sent}
    senders = Counter((kind, name) for _, kind, name in pairs)
    return tuple(
        Rule(
            names.make(each.bridge.name),
            each.sent[0].place,
            SERVER,
            address(TOPIC, each.bridge.name),
            tuple(_send(sent, each, senders, ties, secrets) for sent in each.sent),
            each.exclude,
            (*_notes(each, secrets), *ties.source_notes(each.bridge.name)),
            each.selector,
            both=each.back is not None,
        )
        for each in carried
    )


def _send(
    sent: Sent,
    each: Carried,
    senders: Counter[tuple[str, str]],
    ties: Ties,
    secrets: Sequence[str],
) -> Send:
    notes = [*prose(sent.above, secrets), str(sent.place)]
    lossy = is_wild(each.bridge.name) or senders[sent.kind, sent.name] > 1
    if lossy:
        notes.append("Different names become this one, as they do over the bridge.")
    if sent.kind == TOPIC:
        notes += ties.target_notes(sent.name)
    return Send(SERVER, address(sent.kind, sent.name), tuple(notes), lossy)


def _notes(each: Carried, secrets: Sequence[str]) -> Iterator[str]:
    bridge = each.bridge
    yield from prose(bridge.above, secrets)
    yield f"{bridge.place}: [{bridge.kind}:{bridge.name}]"
    if each.back is not None:
        yield f"{each.back.place} is its way back: the server sends nothing over two bridges."
    own = {address(sent.kind, sent.name) for sent in each.sent} & set(each.exclude)
    if own:
        yield "Its own target is left out of the source, so that the route does not loop."
    if set(each.exclude) - own:
        yield "What earlier bridges send to this target already is left out."
