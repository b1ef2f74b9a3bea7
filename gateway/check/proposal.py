"""A pattern and a template for a name and the name that is wanted for it at another system."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.config.load import Configuration
from gateway.dialects.base import Dialect, parse_subject
from gateway.errors import GatewayError
from gateway.proofs import RouteFinding, prove
from gateway.proofs.reverse_route import both_ways
from gateway.routing.destination_kind import kind_chosen_by_mapping
from gateway.routing.explain import explain
from gateway.routing.route import Route, Target, for_templates
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

PROPOSED: Final = "proposed"  # the name of the route


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pattern and a template that make the wanted name, and the name that they make back.

    `why_not_back` is the reason why the wanted name does not become the given one again, or an
    empty text.
    """

    pattern: str
    template: str
    why_not_back: str = ""

    @property
    def takes_others(self) -> bool:
        """Whether the pattern also takes other names."""
        return "{" in self.pattern


def propose(name: str, wanted: str, source: Dialect, target: Renderer) -> Proposal:
    """Return the pattern and template that make `wanted` at `target` of `name` at `source`.

    A level of the name that the wanted one has, too, is a capture; levels that end both are one
    capture of the rest; all others stay as they are.

    Raises:
        SubjectError: one of the names is illegal at its system.
        GatewayError: no template makes the name, as where the target shortens it.
    """
    there = target.dialect
    if "{" in name + wanted:
        raise GatewayError("a pattern and a template cannot have braces of a name")
    here, made = (_Written.read(*each) for each in ((name, source), (wanted, there)))
    rest = _equal_end(here.levels, made.levels)
    places = defaultdict[str, list[int]](list)  # of each level of the name, the last one first
    for at in reversed(range(len(here.levels) - rest)):
        places[here.levels[at]].append(at)
    captured: dict[int, int] = {}  # the level of the name for each level of the wanted one
    for at, level in enumerate(made.levels[: len(made.levels) - rest]):
        if level and (found := places.get(level)):
            captured[at] = found.pop() if len(found) > 1 else found[0]
    captures = {each: f"{{level{each + 1}}}" for each in captured.values()}
    pattern = here.text(captures, rest)
    template = made.text({at: captures[each] for at, each in captured.items()}, rest)
    route = _route(pattern, template, source, target)
    (result,) = explain(name, [route])
    (made_there,) = result.made
    if made_there.name != wanted:
        found_there = made_there.name or made_there.reason
        raise GatewayError(f"{pattern} and {template} make {found_there}, not {wanted}")
    return Proposal(pattern, template, _why_not_back(route, template, name, wanted))


@dataclass(frozen=True, slots=True)
class _Written:
    """The levels of a name, and how it spells each; `lead` stands before the first."""

    levels: tuple[str, ...]
    spelled: tuple[str, ...]
    lead: str
    separator: str

    @classmethod
    def read(cls, name: str, dialect: Dialect) -> _Written:
        levels = parse_subject(name, dialect).levels
        spelled = name.split(dialect.separator)
        more = len(spelled) - len(levels)
        lead = "".join(each + dialect.separator for each in spelled[:more])
        return cls(levels, tuple(spelled[more:]), lead, dialect.separator)

    def text(self, captures: dict[int, str], rest: int) -> str:
        """Return the name with captures in place of levels, and of the last `rest` ones."""
        kept = self.spelled[: len(self.spelled) - rest]
        levels = [captures.get(at, spelled) for at, spelled in enumerate(kept)]
        return self.lead + self.separator.join([*levels, *(["{rest...}"] if rest else [])])


def _equal_end(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many levels end both names; 0 for a single one, and never all of them."""
    longest = min(len(one), len(other)) - 1
    equal = 0
    while equal < longest and one[-1 - equal] == other[-1 - equal]:
        equal += 1
    return equal if equal > 1 else 0


def makers(name: str, wanted: str, routes: Sequence[Route], source: str, target: str) -> list[str]:
    """Return the routes that make `wanted` of `name` already, between these endpoints."""
    return [
        each.route
        for each in explain(name, routes, source)
        if any((made.target.partition(":")[0], made.name) == (target, wanted) for made in each.made)
    ]


def route_yaml(proposal: Proposal, source: str, target: str) -> list[str]:
    """Return the lines of the route between two endpoints, as they stand below `routes:`."""
    pattern, template = (
        json.dumps(text, ensure_ascii=False) for text in (proposal.pattern, proposal.template)
    )
    return [
        f"  {PROPOSED}:",
        f"    from: {{endpoint: {source}, pattern: {pattern}}}",
        f"    to: {{endpoint: {target}, template: {template}}}",
    ]


def findings_beside(
    proposal: Proposal, configuration: Configuration, source: str, target: str
) -> list[RouteFinding]:
    """Return the findings of the routes of a configuration that its routes alone do not have."""
    here, there = (configuration.endpoints[each] for each in (source, target))
    renderer = Renderer(there.dialect, there.on_unmappable, there.on_too_long)
    route = _route(proposal.pattern, proposal.template, here.dialect, renderer)
    to = replace(route.targets[0], label=target, endpoint=target, allow=there.allow)
    route = replace(route, endpoint=source, targets=(to,))
    before = {_key(each) for each in prove(configuration.routes, configuration.brokers)}
    found = prove([*configuration.routes, route], configuration.brokers)
    return [each for each in found if _key(each) not in before]


def _route(pattern: str, template: str, source: Dialect, target: Renderer) -> Route:
    taken = parse_source(pattern, source)
    templates = (parse_template(template, target.dialect, taken),)
    kind = kind_chosen_by_mapping(templates, taken, target.dialect)
    renderer = for_templates(target, templates)
    made = Target("there", "there", renderer, templates, kind=kind)
    return Route(PROPOSED, "here", source, taken, (made,))


def _key(finding: RouteFinding) -> tuple[object, ...]:
    return (finding.route, finding.source, finding.target, finding.rule, finding.text)


def _why_not_back(route: Route, template: str, name: str, wanted: str) -> str:
    try:
        _, reverse = both_ways(route, template, "back")
    except GatewayError as error:
        return str(error)
    (result,) = explain(wanted, [reverse])
    if result.why_not:
        return result.why_not
    (back,) = result.made
    return "" if back.name == name else back.reason or f"it becomes {back.name}"
