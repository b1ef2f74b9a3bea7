"""The target names of a route as expressions in the source name: a flow each target and pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.proofs.flows.flow import (
    Flow,
    LevelVariable,
    LossyCall,
    Part,
    RestVariable,
    RouteSource,
    SourceLevel,
    TargetLevel,
    source_levels,
    variable_positions,
)
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import CaptureSpan, SourcePattern
from gateway.routing.template import (
    FieldPlaceholder,
    LevelPart,
    Placeholder,
    RestPlaceholder,
    Template,
)

Spans: TypeAlias = Mapping[str, CaptureSpan]  # by the name of the capture


def extract_flows(
    routes: Sequence[Route], brokers: Mapping[str, str]
) -> tuple[list[RouteSource], list[Flow]]:
    """Return all sources and flows, in order; `brokers` by endpoint.

    A route over the names of another one begins at their channel (`carried_names`).
    """
    counted: dict[str, int] = {}
    sources: list[RouteSource] = []
    for number, (route, broker) in enumerate(_over_names(routes, brokers)):
        source_index = counted.setdefault(route.name, 0)
        counted[route.name] += 1
        patterns = selected_patterns(route.source)
        excludes = tuple(pattern for each in route.excludes for pattern in selected_patterns(each))
        sources.append(RouteSource(number, route, source_index, broker, patterns, excludes))
    return sources, [flow for source in sources for flow in _flows(source, brokers)]


def _over_names(routes: Sequence[Route], brokers: Mapping[str, str]) -> Iterator[tuple[Route, str]]:
    """Yield each route with the broker of its names: one for all patterns of a `names_of`."""
    last, texts = ("", ""), set[str]()
    for route in routes:
        broker = brokers[route.endpoint]
        if route.names_of is not None:
            broker = channel_of(broker, route.names_of)
            if (route.name, broker) == last and route.source.text not in texts:
                texts.add(route.source.text)
                continue
        last, texts = (route.name, broker), {route.source.text}
        yield route.over_names, broker


def channel_of(broker: str, writer: Route) -> str:
    """Return the place of the names that `writer` carries to a broker."""
    return "\n".join((broker, *(function_of(writer, each) for each in writer.targets)))


def function_of(route: Route, target: Target) -> str:
    """Return all that makes names at a target of those at the source, but for exclusions."""
    source = route.source.text.removeprefix(route.source.share)
    templates = (each.text for each in target.templates)
    return "\t".join((route.dialect.name, source, *templates))


def _flows(source: RouteSource, brokers: Mapping[str, str]) -> list[Flow]:
    return [
        make_flow(source, index, each, brokers[each.endpoint], pattern)
        for index, target in enumerate(source.route.targets)
        for each in _by_template(target)
        for pattern in source.patterns
    ]


def _by_template(target: Target) -> list[Target]:
    """Return the target once for each of its templates."""
    if len(target.templates) <= 1:
        return [target]
    return [replace(target, templates=(each,)) for each in target.templates]


def make_flow(
    source: RouteSource, target_index: int, target: Target, broker: str, pattern: Pattern
) -> Flow:
    """Return the flow of a target for `pattern`, whose names the route takes."""
    levels = _target_levels(target.template, pattern, source.route.source)
    target_pattern = Pattern(tuple(_level_pattern(level, pattern) for level in levels))
    return Flow(source, target_index, target, broker, pattern, levels, target_pattern)


def whole_target_flow(flow: Flow) -> Flow:
    """Return the flow with the levels of all templates of its target, one after the other.

    For the proof of injectivity: the tags of a list together identify the source name.
    """
    target = flow.source.route.targets[flow.target_index]
    if len(target.templates) <= 1:
        return flow
    levels = tuple(
        level
        for each in _by_template(target)
        for level in _target_levels(each.template, flow.pattern, flow.source.route.source)
    )
    return replace(flow, target=target, target_levels=levels)


def _target_levels(
    template: Template | None, pattern: Pattern, source: SourcePattern
) -> tuple[TargetLevel, ...]:
    known = source_levels(pattern)
    if template is None:
        return known
    spans = dict(source.spans)
    made: list[TargetLevel] = []
    for level in template.levels:
        if isinstance(level, RestPlaceholder):
            made += _captured(level, known, spans)
        else:
            made.append(_level_parts(level.parts, known, spans))
    return tuple(made)


def _captured(
    part: Placeholder | RestPlaceholder | FieldPlaceholder,
    known: Sequence[SourceLevel],
    spans: Spans,
) -> Sequence[SourceLevel | LossyCall]:
    """Return the levels of a capture, or the call of its functions when not all are injective."""
    span = spans.get(part.name)
    if span is None:  # a capture of a required tag, or a field of the message
        single = not isinstance(part, RestPlaceholder)
        plain = isinstance(part, FieldPlaceholder) and not part.functions
        return [LossyCall((), part.functions, single, part.name if plain else "")]
    captured = span.taken(known)
    if all(function.injective for function in part.functions):
        return captured
    return [LossyCall(variable_positions(captured), part.functions, single_level=not span.rest)]


def _level_parts(
    level: Sequence[LevelPart], known: Sequence[SourceLevel], spans: Spans
) -> tuple[Part, ...]:
    parts: list[Part] = []
    for part in level:
        if isinstance(part, str):
            parts.append(part)
            continue
        for each in _captured(part, known, spans):
            if isinstance(each, LossyCall):
                parts.append(each)
            elif not isinstance(each, RestVariable):
                parts += each
    return _merge_texts(parts)


def _merge_texts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Join adjacent texts."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged) or ("",)


def _level_pattern(level: TargetLevel, pattern: Pattern) -> Level:
    """Return the pattern of all texts of one target level."""
    match level:
        case RestVariable(at) | (LevelVariable(at),):
            return pattern.levels[at]
        case LossyCall():
            return AnyMany(0)
        case (str(text),):
            return Literal(text)
        case (LossyCall(),):
            return AnyOne()
        case _:
            return _glob(level, pattern)


def _glob(parts: Sequence[Part], pattern: Pattern) -> Glob:
    texts = [""]
    least = 0
    for part in parts:
        if isinstance(part, str):
            texts[-1] += part
            continue
        level = pattern.levels[part.position] if isinstance(part, LevelVariable) else AnyOne()
        inner = level.parts if isinstance(level, Glob) else ("", "")
        least += level.minimum if isinstance(level, Glob) else 0
        texts[-1] += inner[0]
        texts += inner[1:]
    return Glob((texts[0], *filter(None, texts[1:-1]), texts[-1]), least)


def selected_patterns(source: SourcePattern) -> tuple[Pattern, ...]:
    """Return patterns that select exactly what `source` selects, with its depth applied.

    Only a YAMI4 pattern has a depth; it has at most one rest wildcard, at the end.
    """
    if source.depth is None:
        return source.patterns
    found: list[Pattern] = []
    for pattern in source.patterns:
        levels = tuple(level for level in pattern.levels if not isinstance(level, AnyMany))
        least = sum(level.minimum for level in pattern.levels if isinstance(level, AnyMany))
        more = source.depth - len(levels)
        if more == 0 and least == 0:
            found.append(Pattern(levels, pattern.exclusions))
        elif more >= max(1, least) and len(levels) < len(pattern.levels):
            found.append(Pattern((*levels, *[AnyOne()] * more), pattern.exclusions))
    return tuple(dict.fromkeys(found))
