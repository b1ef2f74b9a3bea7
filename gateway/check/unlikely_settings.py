"""Warn of settings that are legal and probably not meant: one function for each rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from gateway.archive.layout import SPOOLED_DAYS
from gateway.check.topics import Doubt, colliding_topics, topics_without_key
from gateway.config.load import Configuration
from gateway.config.nodes import KeyPath
from gateway.dialects.base import Dialect
from gateway.dialects.brokers import BROKERS
from gateway.endpoints.registry import ENDPOINT_KINDS, find_kind
from gateway.errors import ConfigError
from gateway.extras import absent_packages, install_command
from gateway.model.message import DeliveryMode
from gateway.model.overlap_index import candidate_pairs
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.proofs.reverse_route import REVERSE_SUFFIX
from gateway.registry import GATEWAY
from gateway.routing.other_separator import corrected
from gateway.routing.route import Route, names_inboxes
from gateway.terminal.units import counted, size

_CHANGING: Final = re.compile(r"-[0-9a-f]{6,10}-[a-z0-9]{5}\Z|\A[0-9a-f]{12}\Z", re.ASCII)
_SERVER_QUEUES: Final = "queue:amq."  # of RabbitMQ; a client that asks has one
_ENOUGH: Final = SPOOLED_DAYS + 1  # days: the last copies of a date are from its midnight


def memory_targets(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each memory endpoint whose messages never leave the process."""
    endpoints = configuration.endpoints
    taken = {endpoints[route.endpoint].settings.broker_key for route in configuration.routes}
    for name, endpoint in endpoints.items():
        settings = endpoint.settings
        if not find_kind(settings).in_process or settings.broker_key in taken:
            continue
        if senders := _senders(name, configuration):
            reason = f"endpoint {name!r}: {senders} count as delivered and are lost at the end"
            hint = "send elsewhere, or add a route from here"
            yield ("endpoints", name, "kind"), reason, hint


def _senders(name: str, configuration: Configuration) -> str:
    """Return the messages that go to an endpoint, as text; empty when there are none."""
    routes = [
        route.name
        for route in configuration.routes
        if any(target.endpoint == name for target in route.targets)
    ]
    senders = [f"messages of route {each!r}" for each in dict.fromkeys(routes)]
    if configuration.dead_letters.endpoint == name:
        senders.append("the dead letters")
    return " and ".join(senders)


def forward_only_rules(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each route whose reverse route lacks some of its settings."""
    routes = {route.name: route for route in configuration.routes}
    for forward in routes.values():
        reverse = routes.get(forward.name + REVERSE_SUFFIX)
        if reverse is None or reverse.inverse != forward.name:
            continue
        if lacking := ", ".join(_lacking(forward, reverse)):
            reason = f"route {forward.name!r}: the reverse route does not apply {lacking}"
            hint = "write two routes, each with the settings of its direction"
            yield ("routes", forward.name, "direction"), reason, hint


def _lacking(forward: Route, reverse: Route) -> Iterator[str]:
    """Yield the settings that the reverse route lacks, as the file names them."""
    target, reverse_target = forward.targets[0], reverse.targets[0]
    if forward.selector is not None:
        yield "`selector`"
    parts = [
        ("map", target.rules.maps),
        ("rename", () if reverse_target.rules.renames else target.rules.renames),
        ("drop", target.rules.drops),
        ("set", target.rules.sets),
    ]
    if words := [f"`{word}`" for word, rules in parts if rules]:
        yield f"{' and '.join(words)} of `headers`"
    if target.conversion is not None:
        yield f"`payload: {target.conversion.text}`"
    if target.thin is not None:
        yield "`thin`"


def unlimited_brokers(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each known broker that is a target and whose endpoint sets no limits."""
    targets = {target.endpoint for route in configuration.routes for target in route.targets}
    for name in sorted(targets):
        if ("endpoints", name, "limits") in configuration.locations:
            continue
        hosts = {each.host for each in configuration.endpoints[name].settings.servers()}
        for known in BROKERS.values():
            if known.hosts is not None and any(map(known.hosts.fullmatch, hosts)):
                reason = (
                    f"endpoint {name!r}: {known.title} closes the connection for a name past its"
                    " limits"
                )
                hint = f"write `limits: {known.name}`"
                yield ("endpoints", name), reason, hint


def short_retention(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning when `keep_days` is shorter than the life of a spooled copy.

    Where nights run, a date with such copies stays (`gateway.night.archive.retention`).
    """
    archive = configuration.archive
    if archive is None or configuration.spool is None:
        return
    if archive.keep_days is None or archive.keep_days >= _ENOUGH:
        return
    reason = (
        f"`keep_days: {archive.keep_days}` ends before the {SPOOLED_DAYS} days in which a copy may"
        " wait"
    )
    hint = f"set `keep_days: {_ENOUGH}` or more, or run gateway reconcile each night"
    yield ("archive", "keep_days"), reason, hint


def other_separators(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each text with the separator of another system, and the text to write."""
    counted: dict[str, int] = {}
    for route in configuration.routes:
        if route.name.endswith(REVERSE_SUFFIX):
            continue
        index = counted[route.name] = counted.get(route.name, -1) + 1
        at: KeyPath = ("routes", route.name)
        texts: list[tuple[str, Dialect, KeyPath]] = [
            (route.source.text, route.dialect, (*at, "from", index, "pattern"))
        ]
        texts += [
            (template.text, target.renderer.dialect, (*at, "to", number, "template", position))
            for number, target in enumerate(route.targets if index == 0 else ())
            for position, template in enumerate(target.templates)
        ]
        for text, dialect, place in texts:
            if better := corrected(text, dialect):
                reason = (
                    f"route {route.name!r}: {text!r} is one {dialect.level_noun} in {dialect.name},"
                    f" whose separator is {dialect.separator!r}"
                )
                hint = f"write {better!r}, unless that is intended"
                yield place, reason, hint


def changing_instance(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for an instance whose name is another one at each start.

    A pod of a Deployment ends in the hash of its template and five random characters; the name of
    a container's host is a part of its id.
    """
    instance = configuration.gateway.instance
    if _CHANGING.search(instance):
        reason = f"instance {instance!r} looks like one that changes at each start"
        hint = "use a name that stays, such as a StatefulSet's pod"
        yield ("gateway", "instance"), reason, hint


def unseen_drops(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a note for each source that does not ask how many messages its broker dropped."""
    for name in dict.fromkeys(route.endpoint for route in configuration.routes):
        settings = configuration.endpoints[name].settings
        key = find_kind(settings).drops_setting
        if key and not getattr(settings, key):
            reason = (
                f"endpoint {name!r}: messages that its broker drops at a queue limit are in no gap"
            )
            hint = f"write in `{key}` what the broker publishes, or remove it for the default"
            yield ("endpoints", name, key), reason, hint


def kept_shares(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each shared subscription whose broker keeps the session of a dead member.

    mosquitto, and others, then queue the member's part of new messages for it (MQTT 5.0, 4.8.2).
    """
    for route in configuration.routes:
        settings = configuration.endpoints[route.endpoint].settings
        key = find_kind(settings).session_setting
        if not key or not route.source.share or settings.mode is DeliveryMode.AT_MOST_ONCE:
            continue
        if getattr(settings, key):
            reason = f"route {route.name!r}: new messages wait for a dead gateway of the share"
            hint = f"start it again with its client id, or set `{key}: 0`"
            yield ("routes", route.name, "from"), reason, hint


def lost_retain_flags(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each source whose live messages lose the RETAIN flag for some routes.

    In MQTT 5.0 the flag marks live messages or those retained before, and never both (3.3.1.3).
    """
    for name in dict.fromkeys(route.endpoint for route in configuration.routes):
        settings = configuration.endpoints[name].settings
        if not find_kind(settings).retains or getattr(settings, "version", "") != "5":
            continue
        routes = [each for each in configuration.routes if each.endpoint == name]
        ignoring = next((each.name for each in routes if not each.take_retained), None)
        keeping = (each for each in routes if each.take_retained and _retains(each, configuration))
        taking = next((each.name for each in keeping), None)
        if ignoring and taking:
            reason = (
                f"route {ignoring!r} ignores retained messages, so {taking!r} gets live ones"
                " without RETAIN"
            )
            hint = f"give {ignoring!r} an endpoint of its own"
            yield ("routes", ignoring, "retained"), reason, hint


def _retains(route: Route, configuration: Configuration) -> bool:
    """Return whether a target of a route keeps the RETAIN flag."""
    targets = (configuration.endpoints[each.endpoint].settings for each in route.targets)
    return any("retained" in each.carries for each in targets)


def separate_sessions(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each source whose session is at one of several brokers only."""
    for name in dict.fromkeys(route.endpoint for route in configuration.routes):
        settings = configuration.endpoints[name].settings
        key = find_kind(settings).session_setting
        kept = key and getattr(settings, key) and settings.mode is not DeliveryMode.AT_MOST_ONCE
        if not kept or len(settings.addresses) == 1 or getattr(settings, "cluster", True):
            continue
        reason = f"endpoint {name!r}: each address keeps its own session"
        hint = f"write `cluster: true` if they share one, or `{key}: 0`"
        yield ("endpoints", name, "host"), reason, hint


def new_copy_ids(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a note for each route whose `gateway_id` is another one at a second delivery."""
    for name, routes in groupby(configuration.routes, key=lambda route: route.name):
        for route in routes:
            settings = configuration.endpoints[route.endpoint].settings
            if find_kind(settings).gives_identity or settings.mode is DeliveryMode.AT_MOST_ONCE:
                continue
            if not any(target.add_message_id for target in route.targets):
                continue
            reason = (
                f"route {name!r}: messages at {route.endpoint!r} have no identity, unless a gateway"
                " sent them: after a crash a message that is delivered again has another"
                " `gateway_id`, and a receiver cannot drop it by that"
            )
            hint = "let the receiver compare what the publisher writes, such as a number"
            yield ("routes", name, "to"), reason, hint
            break


def open_replies(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each route through which any publisher reaches the inboxes of clients."""
    for route in configuration.routes:
        for target in route.targets:
            text = target.template.text if target.template else ""
            dialect = target.renderer.dialect
            opens = names_inboxes(text, dialect) or text.startswith(_SERVER_QUEUES)
            if not opens or route.replies_within:
                continue
            reason = (
                f"route {route.name!r}: who publishes at {route.endpoint!r} reaches the inbox of"
                f" every client at {target.endpoint!r}, whether it asked or not"
            )
            hint = "write `replies_within: 60`: it takes replies to requests that the gateway sent"
            yield ("routes", route.name, "to"), reason, hint


def shared_windows(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a note for each source whose window one frozen target can fill for the others."""
    if configuration.spool is not None:
        return
    targets: dict[str, set[str]] = {}
    for route in configuration.routes:
        targets.setdefault(route.endpoint, set()).update(each.endpoint for each in route.targets)
    for name, reached in targets.items():
        settings = configuration.endpoints[name].settings
        held = getattr(settings, "receive_window_bytes", None)
        if len(reached) < 2 or held is None:  # noqa: PLR2004  # another one
            continue
        window = getattr(settings, "receive_window", None)
        messages = "" if window is None else f"{counted(window, 'message')} or "
        reason = (
            f"endpoint {name!r}: a frozen target stops all {len(reached)} of it after"
            f" {messages}{size(held)}"
        )
        yield ("endpoints", name), reason, "add a section `spool`, or a source for each target"


def thinned_without_spool(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each target that cannot get the latest message of an interval."""
    if configuration.spool is not None:
        return
    for route in configuration.routes:
        for target in route.targets:
            if target.thin is not None and target.thin.seconds:
                reason = (
                    f"route {route.name!r}: without a spool {target.endpoint!r} gets the first"
                    f" message of each {target.thin.seconds:g} s, and never the latest"
                )
                hint = "add a section `spool`, with `shared: true` in a pair"
                yield ("routes", route.name, "to"), reason, hint


def thinned_fields(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each target that holds some names of one source name, and not others."""
    for route in configuration.routes:
        for target in route.targets:
            made = target.name_fields or route.names_of
            if target.thin is not None and target.thin.seconds and made:
                reason = (
                    f"route {route.name!r}: of names made of fields, nights call a late message"
                    " out of order"
                )
                hint = "use `on_change`, or leave fields out"
                yield ("routes", route.name, "to"), reason, hint


def thinned_beside_others(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a warning for each thinned target whose names another endpoint also sends there."""
    flows = extract_flows(configuration.routes, configuration.brokers)[1]
    every = [(each.target_pattern, each) for each in flows]
    thinned = [row for row in every if row[1].target.thin is not None]
    seen: set[tuple[str, int, str]] = set()
    for one, other in candidate_pairs(thinned, every):
        name, endpoints = one.source.route.name, (one.target.endpoint, other.target.endpoint)
        found = (name, one.target_index, endpoints[1])
        if one.broker != other.broker or endpoints[0] == endpoints[1] or found in seen:
            continue
        seen.add(found)
        reason = (
            f"route {name!r}: {endpoints[1]!r} may send names there that {endpoints[0]!r} thins:"
            " an old value may stay"
        )
        yield ("routes", name, "to"), reason, "let one endpoint send each name"


def absent_drivers(configuration: Configuration) -> Iterator[Doubt]:
    """Yield a note for each extra that `gateway run` needs and this environment lacks."""
    uses: dict[tuple[str, str], tuple[KeyPath, str]] = {}  # by extra and package: the first use
    for name, endpoint in configuration.endpoints.items():
        kind = find_kind(endpoint.settings)
        if kind.extra:
            package = ENDPOINT_KINDS.package_of(kind.name)
            at: KeyPath = ("endpoints", name, "kind")
            uses.setdefault((kind.extra, package), (at, f"`kind: {kind.name}`"))
    if configuration.tracing is not None:
        uses["otel", GATEWAY] = ("tracing",), "`tracing`"
    for (extra, package), (at, use) in uses.items():
        if absent := ", ".join(absent_packages(extra, package)):
            reason = f"not installed here: {absent}; `gateway run` needs this for {use}"
            yield at, reason, f"where it runs: {install_command(extra, package)}"


DOUBTS: Final[Mapping[str, tuple[str, Callable[[Configuration], Iterator[Doubt]]]]] = {
    "not-on-the-way-back": ("warning", forward_only_rules),
    "memory-target": ("warning", memory_targets),
    "short-retention": ("warning", short_retention),
    "broker-limits": ("warning", unlimited_brokers),
    "other-separator": ("warning", other_separators),
    "unseen-drops": ("note", unseen_drops),
    "kept-share": ("warning", kept_shares),
    "lost-retain-flag": ("warning", lost_retain_flags),
    "separate-sessions": ("warning", separate_sessions),
    "changing-instance": ("warning", changing_instance),
    "new-copy-id": ("note", new_copy_ids),
    "open-replies": ("warning", open_replies),
    "shared-window": ("note", shared_windows),
    "thin-without-spool": ("warning", thinned_without_spool),
    "thin-order": ("warning", thinned_fields),
    "thin-shared": ("warning", thinned_beside_others),
    "absent-driver": ("note", absent_drivers),
    "no-key": ("note", topics_without_key),
    "metrics-name": ("note", colliding_topics),
}


def doubts(configuration: Configuration, rules: Iterable[str] = DOUBTS) -> Iterator[ConfigError]:
    """Yield the findings of some rules, or of all."""
    for rule in rules:
        severity, find = DOUBTS[rule]
        for at, reason, hint in find(configuration):
            yield configuration.location_of(at).error(rule, reason, hint, severity)
