"""Proof: a target sends nowhere but to what its endpoint allows."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.base import Dialect, parse_subject
from gateway.model.pattern import AnyMany, Literal, Pattern
from gateway.proofs.facts import EndpointFacts, Finding
from gateway.proofs.forms import Flow
from gateway.proofs.solve import restricted
from gateway.proofs.survey import fixed_depth, flow_of
from gateway.proofs.witness import Refused, attempt
from gateway.proofs.words import exactly, example
from gateway.routing.captures import parse_source

ATTEMPTS = 4  # made names that a source name is looked for
HINT = "begin the template with what is allowed, or allow more at the endpoint"


def allowed_patterns(text: str, dialect: Dialect) -> tuple[Pattern, ...]:
    """What one line of `allow` allows: a pattern, or a name and all that lies below it.

    Raises:
        SubjectError: it is neither.
    """
    patterns = fixed_depth(parse_source(text, dialect))
    if all(isinstance(level, Literal) for pattern in patterns for level in pattern.levels):
        levels = parse_subject(text, dialect).levels
        return (Pattern((*map(Literal, levels), AnyMany(0))),)
    return patterns


def all_allowed(facts: EndpointFacts) -> tuple[Pattern, ...]:
    """Everything that an endpoint allows; nothing stands for all.

    Raises:
        SubjectError: `allow` has an illegal pattern.
    """
    return tuple(each for text in facts.allow for each in allowed_patterns(text, facts.dialect))


def within(flow: Flow, allowed: Sequence[Pattern]) -> tuple[list[Flow], Finding | None]:
    """The part of `flow` that stays within what is allowed, and a name that does not.

    `allowed` comes from the endpoint's facts; the target's own `allow` holds besides. The part
    is one flow for each pattern that is left, `flow` itself when nothing is outside.

    Raises:
        LimitError: the search became too long.
    """
    own = [pattern for each in flow.target.allow for pattern in fixed_depth(each)]
    flows, found = [flow], None
    for patterns in (own, allowed):
        if patterns and example([[flow.image]], patterns) is not None:
            flows = [
                flow_of(each.site, each.place, each.target, each.broker, pattern)
                for each in flows
                for goal in patterns
                for pattern in restricted(each, goal)
                if example([[pattern]], each.site.excludes) is not None
            ]
            found = found or _outside(flow, patterns)
    return flows, found


def _outside(flow: Flow, patterns: Sequence[Pattern]) -> Finding | None:
    tried: list[Pattern] = []
    at = flow.target.endpoint
    while len(tried) < ATTEMPTS:
        made = example([[flow.image]], [*patterns, *tried])
        if made is None:
            break
        tried.append(exactly(made))
        if (names := _names(flow, tried[-1], patterns)) is not None:
            text = f"{names[0]!r} becomes {names[1]!r}, which is outside of what {at!r} allows"
            return flow.site.finding("outside-allow", "error", text, HINT, names, target=flow.place)
    if not tried:
        return None
    text = f"names may leave what {at!r} allows; no example was found"
    return flow.site.finding("unproven", "warning", text, HINT, target=flow.place)


def _names(flow: Flow, made: Pattern, allowed: Sequence[Pattern]) -> tuple[str, str] | None:
    """A name and what it becomes, outside of `allowed`; looked for where `made` comes from."""
    for pattern in restricted(flow, made):
        levels = example([[pattern]], flow.site.excludes)
        found = None if levels is None else attempt(flow.site.route, flow.target, levels)
        if isinstance(found, Refused):
            if found.error.rule == "not-allowed":
                return found.name, found.error.text
        elif found is not None and example([[exactly(found.arrived)]], allowed) is not None:
            return found.name, found.made
    return None
