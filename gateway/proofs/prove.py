"""All proofs over a set of routes, in the order of the routes; nothing is sent and nothing read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway.errors import LimitError
from gateway.model.pattern import Pattern
from gateway.proofs.across import across
from gateway.proofs.allowed import all_allowed, within
from gateway.proofs.cycles import cycles
from gateway.proofs.facts import EndpointFacts, Finding
from gateway.proofs.firsts import firsts
from gateway.proofs.forms import Flow, Site
from gateway.proofs.injective import injective
from gateway.proofs.inverse import prove_inverse
from gateway.proofs.reach import reach, unused
from gateway.proofs.sample import never_sent
from gateway.proofs.sizes import sizes
from gateway.proofs.survey import survey, whole_of
from gateway.routing.route import Route

ALONE = frozenset(  # one finding of these is enough for a target
    {"not-injective", "possible-loss", "past-limit", "first-place", "never-sent", "outside-allow"}
)


def prove(routes: Sequence[Route], endpoints: Mapping[str, EndpointFacts]) -> list[Finding]:
    """Every finding about `routes`, by route, errors first.

    Routes that name each other as their `inverse` are held to it.

    Raises:
        KeyError: an endpoint is not in `endpoints`; SubjectError: `allow` has an illegal pattern.
    """
    sites, flows = survey(routes, {name: facts.broker for name, facts in endpoints.items()})
    allowed = {name: all_allowed(facts) for name, facts in endpoints.items()}
    found: list[Finding] = []
    dead: set[Site] = set()
    for site in sites:
        about = list(reach(site))
        found += [*about, *unused(site)]
        if any(finding.rule == "unreachable" for finding in about):
            dead.add(site)
    live: list[Flow] = []
    for flow in flows:
        if flow.site not in dead:
            for part in _within(flow, allowed[flow.target.endpoint], found):
                about = list(_single(part))
                found += about
                if not any(finding.rule == "never-sent" for finding in about):
                    live.append(part)
    found += across(live)
    found += cycles(live)
    found += _inverses(routes)
    return _ordered(found, routes)


def _within(flow: Flow, allowed: Sequence[Pattern], found: list[Finding]) -> list[Flow]:
    """The allowed part of `flow`; what is not allowed goes to `found`."""
    try:
        parts, outside = within(flow, allowed)
    except LimitError as error:
        found.append(_given_up(flow, error))
        return [flow]
    found += [] if outside is None else [outside]
    return parts


def _single(flow: Flow) -> Iterator[Finding]:
    """The proofs that look at one target alone."""
    try:
        if (finding := never_sent(flow)) is not None:
            yield finding
            return
        if (finding := injective(whole_of(flow))) is not None:
            yield finding
        yield from sizes(flow)
        yield from firsts(flow)
    except LimitError as error:
        yield _given_up(flow, error)


def _given_up(flow: Flow, error: LimitError) -> Finding:
    text = f"the proofs were given up: {error}"
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
