"""All proofs over a set of routes, in the order of the routes; nothing is sent and nothing read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway.errors import LimitError
from gateway.proofs import budget
from gateway.proofs.budget import TOO_LONG, ask, bounded
from gateway.proofs.finding import Finding
from gateway.proofs.flows.extract import survey, whole_of
from gateway.proofs.flows.flow import Flow, Site
from gateway.proofs.rules.allowed import within
from gateway.proofs.rules.cycles import cycles
from gateway.proofs.rules.injective import injective
from gateway.proofs.rules.inverse import prove_inverse
from gateway.proofs.rules.limits import sizes
from gateway.proofs.rules.overlap import across
from gateway.proofs.rules.reach import reach, unused
from gateway.proofs.rules.reserved_prefixes import firsts
from gateway.proofs.rules.shares import shares
from gateway.proofs.search.growth import Edges
from gateway.proofs.search.samples import never_sent, sample
from gateway.routing.route import Route

ALONE = frozenset(  # one finding of these is enough for a target
    {"not-injective", "possible-loss", "past-limit", "first-place", "never-sent", "outside-allow"}
)


def prove(routes: Sequence[Route], brokers: Mapping[str, str]) -> list[Finding]:
    """Every finding about `routes`, by route, errors first.

    `brokers` has a text for each endpoint, the same for those that lead to one broker. Routes that
    name each other as their `inverse` are held to it.

    Raises:
        KeyError: an endpoint is not in `brokers`.
    """
    sites, flows = survey(routes, brokers)
    found = [*shares(sites)]
    with bounded():
        dead = _dead(sites, found)
    with bounded(budget.AMPLE):
        live = _live([flow for flow in flows if flow.site not in dead], found)
    for proof in (across, cycles):
        with bounded():
            found += proof(live)
    with bounded():
        found += _inverses(routes)
    return _ordered(found, routes)


def _dead(sites: Sequence[Site], found: list[Finding]) -> set[Site]:
    """Routes that take no name; what is wrong with any goes to `found`."""
    dead: set[Site] = set()
    for site in sites:
        about = list(reach(site))
        found += [*about, *unused(site)]
        if any(finding.rule == "unreachable" for finding in about):
            dead.add(site)
    return dead


def _live(flows: Sequence[Flow], found: list[Finding]) -> list[Flow]:
    """The parts of `flows` that names go through; what is wrong with one alone goes to `found`."""
    live: list[Flow] = []
    edges: Edges = {}
    for flow in flows:
        ask()
        for part in _within(flow, found):
            about = list(_single(part, edges))
            found += about
            if not any(finding.rule == "never-sent" for finding in about):
                live.append(part)
    return live


def _within(flow: Flow, found: list[Finding]) -> list[Flow]:
    """The allowed part of `flow`; what is not allowed goes to `found`."""
    try:
        parts, outside = within(flow)
    except LimitError:
        found.append(_given_up(flow))
        return [flow]
    found += [] if outside is None else [outside]
    return parts


def _single(flow: Flow, edges: Edges) -> Iterator[Finding]:
    """The proofs that look at one target alone."""
    try:
        plain = sample(flow)
        if plain is None and (finding := never_sent(flow)) is not None:
            yield finding
            return
        if (finding := injective(whole_of(flow))) is not None:
            yield finding
        if plain is not None:
            yield from sizes(flow, plain, edges)
        yield from firsts(flow)
    except LimitError:
        yield _given_up(flow)


def _given_up(flow: Flow) -> Finding:
    text = f"what becomes of names at {flow.target.endpoint!r} is open: {TOO_LONG}"
    hint = "use fewer rest wildcards in the pattern"
    return flow.site.finding("unproven", "warning", text, hint, target=flow.place)


def _inverses(routes: Sequence[Route]) -> Iterator[Finding]:
    named = {route.name: route for route in routes}
    for route in routes:
        if (back := named.get(route.inverse)) is not None:
            finding = prove_inverse(route, back)
            if finding is not None:
                yield finding


def _ordered(found: Sequence[Finding], routes: Sequence[Route]) -> list[Finding]:
    """By route, then errors first; of those that differ only in their example, the first."""
    order = {name: at for at, name in enumerate(dict.fromkeys(route.name for route in routes))}
    weight = {"error": 0, "warning": 1, "note": 2}
    kept: dict[object, Finding] = {}
    lost = {_target_of(each) for each in found if each.rule == "not-injective"}
    for each in found:
        if each.rule == "possible-loss" and _target_of(each) in lost:
            continue  # another pattern of the same source is the proof
        key = (*_target_of(each), each.rule) if each.rule in ALONE else each
        kept.setdefault(key, each)
    return sorted(kept.values(), key=lambda each: (order[each.route], weight[each.severity]))


def _target_of(finding: Finding) -> tuple[str, int, int | None]:
    return finding.route, finding.source, finding.target
