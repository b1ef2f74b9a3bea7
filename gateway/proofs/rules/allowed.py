"""Proof: a target sends nowhere but to what its endpoint allows."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.base import Dialect
from gateway.model.pattern import AnyMany, Literal, Pattern
from gateway.proofs.finding import Finding
from gateway.proofs.flows.extract import fixed_depth, flow_of
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.equations import restricted
from gateway.proofs.search.examples import exactly, example
from gateway.proofs.search.witness import Refused, attempt

ATTEMPTS = 4  # made names that a source name is looked for
HINT = "begin the template with what is allowed, or allow more at the endpoint"


def never_sent_to(dialect: Dialect) -> list[Pattern]:
    """Names with a level that is one client's inbox: every target refuses them, so none leave."""
    found: list[Pattern] = []
    for text in dialect.inboxes:
        (first,), (_, meant) = dialect.codec.decode([text]), dialect.codec.decode(["x", text])
        found.append(Pattern((AnyMany(0), Literal(meant), AnyMany(0))))
        if first != meant:
            found.append(Pattern((Literal(first), AnyMany(0))))
    return found


def within(flow: Flow) -> tuple[list[Flow], Finding | None]:
    """The part of `flow` that stays within what its target allows, and a name that does not.

    The part is one flow for each pattern that is left, `flow` itself when nothing is outside.

    Raises:
        LimitError: the search became too long.
    """
    allowed = [pattern for each in flow.target.allow for pattern in fixed_depth(each)]
    inner = [*allowed, *never_sent_to(flow.target.renderer.dialect)]
    if not allowed or example([[flow.image]], inner) is None:
        return [flow], None
    flows = [
        flow_of(flow.site, flow.place, flow.target, flow.broker, pattern)
        for goal in allowed
        for pattern in restricted(flow, goal)
        if example([[pattern]], flow.site.excludes) is not None
    ]
    return flows, _outside(flow, inner)


def _outside(flow: Flow, patterns: Sequence[Pattern]) -> Finding | None:
    """A name that is made outside of `patterns`, if any may be."""
    tried: list[Pattern] = []
    at = flow.target.endpoint
    while len(tried) < ATTEMPTS:
        made = example([[flow.image]], [*patterns, *tried])
        if made is None:
            break
        tried.append(exactly(made))
        if (names := _names(flow, tried[-1], patterns)) is not None:
            text = f"{names[0]!r} becomes {names[1]!r}, which is outside of what {at!r} allows"
            return flow.site.finding(
                "outside-allow", "error", text, HINT, names, flow.ends, target=flow.place
            )
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
