"""Proof: a target accepts at least one name of the route."""

from __future__ import annotations

from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.samples import varied_names
from gateway.proofs.search.translated_name import RefusedName, translate_name

NAME_DEPENDENT_RULES = frozenset({"not-allowed", "missing-part"})  # other names may keep them
HINT = "change the fixed part of the template, or remove the target"


def prove_sendable(flow: Flow) -> Finding | None:
    """Return the finding that the target refuses every name; for a flow without a sendable name.

    The trial names are short and plain, longer, and such that functions find their parts; a rule
    that refuses all of them lies in the fixed part of the template.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    route, target = flow.source.route, flow.target
    found = [translate_name(route, target, levels) for levels in varied_names(flow)]
    refused = [each for each in found if isinstance(each, RefusedName)]
    if not refused or any(each.error.rule in NAME_DEPENDENT_RULES for each in refused):
        return None
    name, error = refused[0].source_name, refused[0].error
    text = f"no name can be sent to {target.endpoint!r}: {name!r} is refused ({error})"
    return flow.source.finding("never-sent", "error", text, HINT, (name,), target=flow.target_index)
