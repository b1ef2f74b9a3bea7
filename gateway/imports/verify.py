"""The routes of an import held to the proofs of `gateway check`; it changes none of them.

What no line of the input could show alone, a round through two bridges, say, is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway.dialects.base import Dialect
from gateway.imports.document import BACK, Rule
from gateway.imports.lines import Left
from gateway.proofs import prove
from gateway.proofs.reverse_route import both_ways
from gateway.routing.captures import parse_source
from gateway.routing.route import Route, Target
from gateway.routing.selectors.selector import parse_selector
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

MOST_RULES = 2_000  # past them the proofs take longer than an import should


def refused(rules: Sequence[Rule], brokers: Mapping[str, str], dialect: Dialect) -> list[Left]:
    """The errors that `gateway check` will have; `brokers` by endpoint, all of one dialect."""
    if len(rules) > MOST_RULES:
        reason = f"the proofs were left out for more than {MOST_RULES} routes; run `gateway check`"
        return [Left(rules[0].place, "the routes together", reason)]
    routes = [route for rule in rules for route in routes_of(rule, dialect)]
    places = {name: rule.place for rule in rules for name in (rule.name, rule.name + BACK)}
    return [
        Left(
            places[finding.route],
            f"route {finding.route!r}",
            f"`gateway check` refuses it: {finding.text}; {finding.hint}",
        )
        for finding in prove(routes, brokers)
        if finding.severity == "error"
    ]


def routes_of(rule: Rule, dialect: Dialect) -> Iterator[Route]:
    """What the configuration makes of `rule`."""
    source = parse_source(rule.pattern, dialect)
    targets = tuple(
        Target(
            send.endpoint if number == 1 else f"{send.endpoint}:{number}",
            send.endpoint,
            Renderer(dialect),
            parse_template(send.template, dialect, source),
            lossy=send.lossy,
        )
        for number, send in enumerate(rule.sends, 1)
    )
    there = Route(
        rule.name,
        rule.endpoint,
        dialect,
        source,
        targets,
        tuple(parse_source(text, dialect) for text in rule.exclude),
        selector=parse_selector(rule.selector) if rule.selector else None,
    )
    if rule.both:
        yield from both_ways(there, rule.sends[0].template, rule.name + BACK)
    else:
        yield there
