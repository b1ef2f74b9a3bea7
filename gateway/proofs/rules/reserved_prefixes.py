"""What becomes of names that begin with a character the target's system keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.base import Dialect
from gateway.model.pattern import AnyMany, Glob, Pattern
from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.equations import restricted
from gateway.proofs.search.examples import example
from gateway.proofs.search.witness import Refused, Sent, attempt

HINT = "begin the template with a fixed level, if such names should not be treated so"


def firsts(flow: Flow) -> Iterator[Finding]:
    """A note when publishers decide how the made name begins, with what comes of it.

    Raises:
        LimitError: the search became too long.
    """
    first = flow.made[0] if flow.made else ("",)
    if isinstance(first, tuple) and isinstance(first[0], str) and first[0]:
        return
    told: dict[str, tuple[str, ...]] = {}  # by what happens
    for prefix in _prefixes(flow.target.renderer.dialect):
        found = _tried(flow, prefix)
        clause = None if found is None else _clause(found, prefix, flow.target.renderer.dialect)
        if found is not None and clause is not None:
            made = (found.made,) if isinstance(found, Sent) else ()
            told.setdefault(clause[0], (clause[1], found.name, *made))
    if told:
        clauses = "; ".join(clause for clause, *_ in told.values())
        text = f"publishers choose how names at {flow.target.endpoint!r} begin: {clauses}"
        names = [name for _, *names in told.values() for name in names]
        ends = [end for _, *names in told.values() for end in flow.ends[: len(names)]]
        yield flow.site.finding("first-place", "note", text, HINT, names, ends, target=flow.place)


def _prefixes(dialect: Dialect) -> list[str]:
    """How names begin that the system treats in a way of its own, in the middle."""
    own = [*dialect.shy.first, *dialect.inboxes]
    for rule in (*dialect.first, *(each for other in dialect.also for each in other.first)):
        own += [rule.char, *rule.reserved, *rule.answered, *rule.local]
    return list(dict.fromkeys([*own, *(dialect.codec.decode([text])[0] for text in own)]))


def _tried(flow: Flow, prefix: str) -> Sent | Refused | None:
    goal = Pattern((Glob((prefix, "")), AnyMany(0)))
    for pattern in restricted(flow, goal):
        levels = example([[pattern]], flow.site.excludes)
        found = None if levels is None else attempt(flow.site.route, flow.target, levels)
        if found is not None:
            return found
    return None


def _clause(found: Sent | Refused, prefix: str, dialect: Dialect) -> tuple[str, str] | None:
    """What happens, in a word and in a sentence; None when nothing does."""
    if isinstance(found, Refused):
        return "refused", f"{found.name!r} is refused ({found.error.rule})"
    made = found.made.removeprefix(dialect.leading)
    if dialect.shy.first and made.startswith(dialect.shy.first):
        hidden = f"which no wildcard of {dialect.name} reaches"
        return "hidden", f"{found.name!r} becomes {found.made!r}, {hidden}"
    if not made.startswith(prefix):
        return "escaped", f"{found.name!r} is escaped to {found.made!r}"
    return None
