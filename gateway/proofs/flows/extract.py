"""Routes taken apart into flows: what each target makes of the names that each pattern takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.proofs.flows.flow import (
    Cut,
    Flow,
    Made,
    Part,
    Seq,
    Site,
    Symbol,
    Var,
    places_of,
    symbols,
)
from gateway.routing.captures import SourcePattern, Span
from gateway.routing.functions import Function
from gateway.routing.route import Route, Target
from gateway.routing.template import Hole, Rest, Template


def survey(routes: Sequence[Route], brokers: Mapping[str, str]) -> tuple[list[Site], list[Flow]]:
    """All routes and flows, in order; `brokers` by endpoint."""
    counted: dict[str, int] = {}
    sites: list[Site] = []
    for number, route in enumerate(routes):
        source = counted.setdefault(route.name, 0)
        counted[route.name] += 1
        patterns = fixed_depth(route.source)
        excludes = tuple(pattern for each in route.excludes for pattern in fixed_depth(each))
        broker = brokers[route.endpoint]
        sites.append(Site(number, route, source, broker, patterns, excludes))
    return sites, [flow for site in sites for flow in _flows(site, brokers)]


def _flows(site: Site, brokers: Mapping[str, str]) -> list[Flow]:
    return [
        flow_of(site, place, one, brokers[one.endpoint], pattern)
        for place, target in enumerate(site.route.targets)
        for one in _alone(target)
        for pattern in site.patterns
    ]


def _alone(target: Target) -> list[Target]:
    """The target with one of its templates at a time."""
    if not target.also:
        return [target]
    return [replace(target, template=each, also=()) for each in (target.template, *target.also)]


def flow_of(site: Site, place: int, target: Target, broker: str, pattern: Pattern) -> Flow:
    """What a target of `site` makes of the names of `pattern`, all of which the route takes."""
    made = _made(target.template, pattern, site.route.source)
    return Flow(site, place, target, broker, pattern, made, _image(made, pattern))


def whole_of(flow: Flow) -> Flow:
    """The flow with all tags of its target, one behind the other; only for what they tell."""
    target = flow.site.route.targets[flow.place]
    if not target.also:
        return flow
    made = tuple(
        level
        for each in _alone(target)
        for level in _made(each.template, flow.pattern, flow.site.route.source)
    )
    return replace(flow, target=target, made=made)


def _made(template: Template | None, pattern: Pattern, source: SourcePattern) -> tuple[Made, ...]:
    known = symbols(pattern)
    if template is None:
        return known
    spans = dict(source.spans)
    made: list[Made] = []
    for level in template.levels:
        if isinstance(level, Rest):
            made += _many(level, known, spans.get(level.name))
        else:
            made.append(_one(level, known, spans))
    return tuple(made)


def _many(rest: Rest, known: Sequence[Symbol], span: Span | None) -> Sequence[Made]:
    if span is None:  # a capture of another pattern of the route
        return [Cut((), rest.functions, one=False, many=True)]
    symbols_taken = known[span.start : span.stop]
    functions = _lossy(rest)
    if not functions:
        return symbols_taken
    return [Cut(places_of(symbols_taken), functions, one=False, many=True)]


def _one(
    level: Sequence[str | Hole], known: Sequence[Symbol], spans: Mapping[str, Span]
) -> tuple[Part, ...]:
    parts: list[Part] = []
    for part in level:
        if isinstance(part, str):
            parts.append(part)
            continue
        span = spans.get(part.name)
        if span is None:  # a capture of another pattern of the route
            parts.append(Cut((), part.functions, one=True, many=False))
            continue
        symbols_taken = known[span.start : span.stop]
        if functions := _lossy(part):
            cut = Cut(places_of(symbols_taken), functions, one=not span.rest, many=False)
            parts.append(cut)
        else:
            for symbol in symbols_taken:
                parts += () if isinstance(symbol, Seq) else symbol
    return _merged(parts)


def _lossy(part: Hole | Rest) -> tuple[Function, ...]:
    """The functions of a capture's place, none when they lose nothing."""
    return () if all(function.injective for function in part.functions) else part.functions


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Texts side by side are one text."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged) or ("",)


def _image(made: Sequence[Made], pattern: Pattern) -> Pattern:
    levels: list[Level] = []
    for each in made:
        match each:
            case Seq(at):
                levels.append(pattern.levels[at])
            case Cut():
                levels.append(AnyMany(0))
            case _:
                levels.append(_level_of(each, pattern))
    return Pattern(tuple(levels))


def _level_of(parts: Sequence[Part], pattern: Pattern) -> Level:
    """All texts of one made level."""
    match parts:
        case [str() as text]:
            return Literal(text)
        case [Var(at)]:
            return pattern.levels[at]
        case [Cut()]:
            return AnyOne()
        case _:
            return _glob(parts, pattern)


def _glob(parts: Sequence[Part], pattern: Pattern) -> Glob:
    texts = [""]
    least = 0
    for part in parts:
        if isinstance(part, str):
            texts[-1] += part
            continue
        level = pattern.levels[part.at] if isinstance(part, Var) else AnyOne()
        inner = level.parts if isinstance(level, Glob) else ("", "")
        least += level.minimum if isinstance(level, Glob) else 0
        texts[-1] += inner[0]
        texts += inner[1:]
    return Glob((texts[0], *filter(None, texts[1:-1]), texts[-1]), least)


def fixed_depth(source: SourcePattern) -> tuple[Pattern, ...]:
    """What `source` selects as patterns alone: where it has a depth, they have that many levels.

    Only a YAMI4 tag has one, and its patterns have at most one rest wildcard, at the end.
    """
    if source.depth is None:
        return source.patterns
    found: list[Pattern] = []
    for pattern in source.patterns:
        levels = tuple(level for level in pattern.levels if not isinstance(level, AnyMany))
        least = sum(level.minimum for level in pattern.levels if isinstance(level, AnyMany))
        more = source.depth - len(levels)
        if more == 0 and least == 0:
            found.append(Pattern(levels, pattern.shy))
        elif more >= max(1, least) and len(levels) < len(pattern.levels):
            found.append(Pattern((*levels, *[AnyOne()] * more), pattern.shy))
    return tuple(dict.fromkeys(found))
