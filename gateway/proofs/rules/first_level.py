"""Proof: publishers cannot choose a first level that the target's system treats specially."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.base import Dialect
from gateway.model.pattern import AnyMany, Glob, Pattern
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.samples import translate_towards
from gateway.proofs.search.translated_name import RefusedName, TranslatedName

HINT = "begin the template with a fixed level, unless this is intended"


def prove_first_level(flow: Flow) -> Iterator[RouteFinding]:
    """Yield a note when publishers choose the beginning of the target name, with the consequences.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    first = flow.target_levels[0] if flow.target_levels else ("",)
    if isinstance(first, tuple) and isinstance(first[0], str) and first[0]:
        return
    clauses: dict[str, tuple[str, ...]] = {}  # by consequence: the clause and its names
    for prefix in _prefixes(flow.target.renderer.dialect):
        found = next(translate_towards(flow, Pattern((Glob((prefix, "")), AnyMany(0)))), None)
        clause = None if found is None else _clause(found, prefix, flow.target.renderer.dialect)
        if found is not None and clause is not None:
            made = (found.target_name,) if isinstance(found, TranslatedName) else ()
            clauses.setdefault(clause[0], (clause[1], found.source_name, *made))
    if clauses:
        shown = "; ".join(clause for clause, *_ in clauses.values())
        text = f"publishers choose how names at {flow.target.endpoint!r} begin: {shown}"
        names = [name for _, *names in clauses.values() for name in names]
        ends = [end for _, *names in clauses.values() for end in flow.endpoints[: len(names)]]
        yield flow.finding("first-place", "note", text, HINT, names, ends)


def _prefixes(dialect: Dialect) -> list[str]:
    """Return the prefixes in the canonical form that the system treats specially."""
    own = [*dialect.exclusions.first_level_prefixes, *dialect.inbox_levels]
    for rule in (rule for each in (dialect, *dialect.joined) for rule in each.prefix_rules):
        own += [rule.character, *rule.reserved, *rule.reply_only, *rule.local]
    own += dialect.server_levels
    own += [each for each in dialect.kind_prefixes if dialect.separator not in each]
    return list(dict.fromkeys([*own, *(dialect.codec.decode([text])[0] for text in own)]))


def _clause(
    found: TranslatedName | RefusedName, prefix: str, dialect: Dialect
) -> tuple[str, str] | None:
    """Return the consequence in a word and in a clause; None when there is none."""
    if isinstance(found, RefusedName) and found.error.rule == "not-allowed":
        return None  # by a field of the message, which `allow` is for
    if isinstance(found, RefusedName):
        word = "kind" if found.error.rule == "destination-kind" else "refused"
        return word, f"{found.source_name!r} is refused ({found.error.rule})"
    made = found.target_name.removeprefix(dialect.leading)
    if made.startswith(dialect.exclusions.first_level_prefixes):
        hidden = f"which no wildcard of {dialect.name} matches"
        return "hidden", f"{found.source_name!r} becomes {found.target_name!r}, {hidden}"
    if not made.startswith(prefix):
        return "escaped", f"{found.source_name!r} is escaped to {found.target_name!r}"
    return None
