"""The parts of routes that decide names, as JSON values and back, and the names that they make.

Endpoints' addresses and credentials, header rules, selectors and payload conversions are not part
of them: the rules hold names, patterns, templates and limits, and the access of `BrokerAccess`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, TypeAlias

from gateway.dialects.base import Dialect
from gateway.dialects.brokers import with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.dialects.registry import find_dialect
from gateway.errors import GatewayError
from gateway.model.dead_letter_rule import FIELD
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern, WildcardExclusions
from gateway.routing.destination_kind import kind_chosen_by_mapping
from gateway.routing.message_fields import FieldValues
from gateway.routing.route import BrokerAccess, Route, Target, for_templates
from gateway.routing.router import NO_FIELDS, Router
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import parse_template
from gateway.translate.names import OnTooLong, OnUnmappable, Renderer
from gateway.translate.shorten import ShortNames
from gateway.untyped import Untyped

Json: TypeAlias = Mapping[str, Any]

NOT_RECORDED: Final = "(its fields are not recorded)"
_MAX_CACHED: Final = 20_000  # names in the caches of all routers
_LEVELS: Final = {kind.__name__: kind for kind in (Literal, Glob, AnyOne, AnyMany)}


class RouteNames:
    """The names that routes make of a source name, by route and target.

    Mutable: caches, as its routers do.
    """

    def __init__(self, routes: Sequence[Route], dictionary: ShortNames) -> None:
        """`dictionary` resolves short names from endpoints for which a route shortens names."""
        shortens = shortening_endpoints(routes)
        self._lookups = 0
        self._routers: dict[str, list[Router]] = {}
        for route in routes:  # a route with several sources is several routes of one name
            known = dictionary if route.endpoint in shortens else None
            self._routers.setdefault(route.name, []).append(Router(route.dialect, [route], known))

    def names(self, route: str, target: str, name: str, fields: str | None = None) -> list[str]:
        """Return the names at `target`, one for each source of the route that takes `name`.

        `fields` are those of the message in the name, as a row has them. Without any name, the
        reason in parentheses: `NOT_RECORDED` where the name needs fields that are absent.
        """
        if route not in self._routers:
            return ["(no such route)"]
        self._lookups += 1
        if self._lookups % _MAX_CACHED == 0:  # each router has large caches, and routes are many
            for router in (each for same in self._routers.values() for each in same):
                router.forget()
        made: list[str] = []
        refusals: list[str] = []
        values = _recorded_fields(fields)
        found = (router.match_fields(name, values) for router in self._routers[route])
        for match in (match for matches in found for match in matches):
            for each in match.deliveries:
                if each.address and each.label == target:
                    made.append(each.address)
                elif each.rule is FIELD and each.label == target and not values:
                    return [NOT_RECORDED]
                elif each.rule and each.label in {target, ""}:
                    refusals.append(f"(refused: {each.rule})")
        return made or refusals or ["(not taken)"]


def _recorded_fields(text: str | None) -> FieldValues:
    """Return the fields in a row; none where it has none, or no such text."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return NO_FIELDS
    if not isinstance(found, dict):
        return NO_FIELDS
    return {name: each for name, each in found.items() if each is None or isinstance(each, str)}


def shortening_endpoints(routes: Iterable[Route]) -> set[str]:
    """Return the endpoints for which a route shortens names."""
    targets = (target for route in routes for target in route.targets)
    return {each.endpoint for each in targets if each.renderer.on_too_long is OnTooLong.SHORTEN}


def to_rules(routes: Iterable[Route]) -> list[Json]:
    """Return the parts of `routes` that decide names, as JSON values."""
    return list(map(_route_rules, routes))


def _route_rules(route: Route) -> Json:
    writer = {} if route.names_of is None else {"names_of": _route_rules(route.names_of)}
    return {
        "name": route.name,
        "endpoint": route.endpoint,
        "dialect": _dialect_rules(route.dialect),
        "access": asdict(route.access),
        "source": route.source.text,
        "excludes": [_pattern_rules(each) for each in route.excludes],
        "tags": {
            "mode": route.tags.mode.value,
            "prefer": [_pattern_rules(each) for each in route.tags.prefer],
            "require_tags": [_pattern_rules(each) for each in route.tags.require_tags],
        },
        "targets": [_target_rules(target) for target in route.targets],
        **writer,
    }


def to_routes(rules: Iterable[Json]) -> tuple[Route, ...]:
    """Return routes that translate names as those that `to_rules` was given.

    Raises:
        GatewayError: the rules are none of this version.
    """
    try:
        return tuple(map(_route, rules))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GatewayError(f"the rules of names cannot be read: {error!r}") from error


def _target_rules(target: Target) -> Json:
    return {
        "label": target.label,
        "endpoint": target.endpoint,
        "access": asdict(target.access),
        "dialect": _dialect_rules(target.renderer.dialect),
        "templates": [template.text for template in target.templates],
        "allow": [_pattern_rules(each) for each in target.allow],
        "on_unmappable": target.renderer.on_unmappable.value,
        "on_too_long": target.renderer.on_too_long.value,
        "replacement": target.renderer.replacement,
    }


def _dialect_rules(dialect: Dialect) -> Json:
    limits = {} if dialect.refusals is None else dialect.refusals.limits.set_fields()
    return {
        "name": dialect.name,
        "joined": [each.name for each in dialect.joined],
        **({"kinds": list(dialect.kind_prefixes)} if dialect.kind_prefixes else {}),
        "limits": dict(limits),
    }


def _pattern_rules(pattern: SourcePattern) -> str | list[Json]:
    """Return the text; for a derived pattern, which no text may spell, its levels."""
    if pattern.subscription:
        return pattern.text
    return [
        {
            "levels": [
                [type(level).__name__, *(getattr(level, name) for name in level.__match_args__)]
                for level in each.levels
            ],
            "first_level_prefixes": each.exclusions.first_level_prefixes,
            "whole_levels": each.exclusions.whole_levels,
        }
        for each in pattern.patterns
    ]


def _route(rules: Json) -> Route:
    dialect = _dialect(rules["dialect"])
    source = parse_source(rules["source"], dialect)
    tags = TagRule(
        TagMode(rules["tags"]["mode"]),
        _patterns(rules["tags"]["prefer"], dialect),
        _patterns(rules["tags"]["require_tags"], dialect),
    )
    constants = {"@system": dialect.name, "@endpoint": rules["endpoint"]}
    writer = _route(rules["names_of"]) if "names_of" in rules else None
    captured = source if writer is None else writer.source
    targets = tuple(_target(each, captured, tags, constants) for each in rules["targets"])
    excludes = _patterns(rules["excludes"], dialect)
    return Route(
        rules["name"],
        rules["endpoint"],
        dialect,
        source,
        targets,
        excludes=excludes,
        tags=tags,
        access=BrokerAccess(**rules["access"]),
        names_of=writer,
    )


def _target(
    rules: Json, source: SourcePattern, tags: TagRule, constants: Mapping[str, str]
) -> Target:
    dialect = _dialect(rules["dialect"])
    parse = partial(parse_template, require_tags=tags.require_tags, constants=constants)
    templates = [parse(text, dialect, source) for text in rules["templates"]]
    policies = OnUnmappable(rules["on_unmappable"]), OnTooLong(rules["on_too_long"])
    renderer = Renderer(dialect, *policies, rules["replacement"])
    return Target(
        rules["label"],
        rules["endpoint"],
        for_templates(renderer, templates),
        tuple(templates),
        _patterns(rules["allow"], dialect),
        kind=kind_chosen_by_mapping(templates, source, dialect),
        access=BrokerAccess(**rules["access"]),
    )


def _dialect(rules: Json) -> Dialect:
    joined = [find_dialect(name) for name in rules["joined"]]
    dialect = find_dialect(rules["name"]).joined_with(joined).with_kinds(rules.get("kinds", ()))
    return with_limits(dialect, NameLimits.from_fields(rules["limits"]))


def _patterns(rules: Sequence[str | list[Json]], dialect: Dialect) -> tuple[SourcePattern, ...]:
    return tuple(
        parse_source(each, dialect) if isinstance(each, str) else _derived(each) for each in rules
    )


def _derived(rules: Sequence[Json]) -> SourcePattern:
    patterns = tuple(
        Pattern(
            tuple(_LEVELS[kind](*map(_frozen, values)) for kind, *values in each["levels"]),
            WildcardExclusions(tuple(each["first_level_prefixes"]), tuple(each["whole_levels"])),
        )
        for each in rules
    )
    return SourcePattern("", "", patterns, None, ())


def _frozen(value: Untyped) -> Untyped:
    return tuple(value) if isinstance(value, list) else value
