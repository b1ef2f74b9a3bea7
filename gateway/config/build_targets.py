"""Targets of a route from their settings: templates, header rules, payload conversion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway.config.build_endpoint import Endpoint, RouteContext, separator_hint
from gateway.config.field_checks import field_faults
from gateway.config.name_parts import check_long_names, check_parts, name_place, written_templates
from gateway.config.place import Place
from gateway.config.schema import HeaderSettings, RouteSettings, TargetSettings
from gateway.dialects.base import parse_pattern
from gateway.endpoints.registry import find_kind
from gateway.errors import GatewayError, quoted
from gateway.model.message import CHOSEN_PARTITION, SOURCE_NAME
from gateway.routing.destination_kind import kind_chosen_by_mapping
from gateway.routing.header_rules import NO_RULES, HeaderRules, parse_header_rules
from gateway.routing.payload_conversion import parse_conversion
from gateway.routing.payload_pick import parse_pick
from gateway.routing.route import Conversion, Target, Thin, WhenFull, for_templates
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import (
    TextTemplate,
    check_placeholders,
    parse_template,
    parse_text_template,
)
from gateway.routing.template_functions import TextLocation
from gateway.translate.names import OnTooLong, OnUnmappable, Renderer

MAX_PARTITION: Final = (1 << 31) - 1  # Kafka protocol guide: an INT32


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts of a source that its targets may use; `constants` are texts by name (`@system`)."""

    pattern: SourcePattern
    tags: TagRule
    constants: Mapping[str, str]


def build_targets(
    route: RouteSettings, source: SourceFacts, context: RouteContext, place: Place
) -> tuple[Target, ...]:
    """Return the targets of `route`; one with findings is reported and left out."""
    targets: list[Target] = []
    for index, settings in enumerate(route.targets):
        here = place[index]
        endpoint = context.find(settings.endpoint, here["endpoint"])
        if endpoint is None or not check_parts(settings, endpoint.dialect, here):
            _check_alone(settings, source, here)
            continue
        has_tags = _has_tags(settings, source.tags, endpoint, here)
        check_long_names(settings.on_too_long, endpoint.dialect, here["on_too_long"])
        label = _label(route, index)
        target = _target(settings, label, endpoint, source, context, here)
        if target is not None and has_tags:
            targets.append(target)
    return tuple(targets)


def _has_tags(settings: TargetSettings, tags: TagRule, endpoint: Endpoint, place: Place) -> bool:
    """Report a tag list for a target without tag lists; return whether there is none."""
    if endpoint.dialect.tag_lists:
        return True
    name = endpoint.dialect.name
    if tags.mode is TagMode.LIST:
        reason = f"{name} has no tag lists, which the tag mode `list` needs"
        place["endpoint"].report("no-tags", reason, "use the tag mode each or first")
        return False
    if len(settings.template or ()) > 1:
        reason = f"{name} has no tag lists, which several templates need"
        place["template"].report("no-tags", reason, "write one template, or two targets")
        return False
    return True


def _target(  # where it stands and what it may use
    settings: TargetSettings,
    label: str,
    endpoint: Endpoint,
    source: SourceFacts,
    context: RouteContext,
    place: Place,
) -> Target | None:
    dialect = endpoint.dialect
    faults = _Faults(place)
    with faults.of("replacement"):
        renderer = Renderer(
            dialect,
            OnUnmappable(settings.on_unmappable or endpoint.on_unmappable),
            OnTooLong(settings.on_too_long or endpoint.on_too_long),
            replacement=settings.replacement,
            dictionary=context.dictionary,
        )
    templates = []
    where = name_place(settings, "template")
    for text in written_templates(settings):
        with faults.of(where, partial(separator_hint, text, dialect)):
            templates.append(
                parse_template(
                    text,
                    dialect,
                    source.pattern,
                    require_tags=source.tags.require_tags,
                    constants=source.constants,
                    report=partial(faults.report, where),
                )
            )
    with faults.of("observe"):
        if settings.observe is not None:
            parse_pattern(settings.observe, dialect)
    rules, conversion = _contents(settings, source, faults)
    kind = find_kind(endpoint.settings)
    if kind.carries_name and rules.writes(SOURCE_NAME):
        reason = f"{SOURCE_NAME!r} is the name at the source, which the gateway writes itself"
        place["headers"].report("headers", reason, "leave it out, or write another name")
    if kind.has_partitions and rules.writes(CHOSEN_PARTITION):
        reason = f"{CHOSEN_PARTITION!r} chooses the partition, which the target does"
        place["headers"].report("headers", reason, "write `partition` at the target")
    if settings.partition is not None and not kind.has_partitions:
        reason = f"an endpoint of kind {kind.name} has no partitions"
        place["partition"].report("partition", reason, "leave `partition` out")
    partition = _partition(settings, source, faults)
    for rule, key, reason, hint in field_faults(templates, rules, endpoint.dialect, endpoint.allow):
        place[key].report(rule, reason, hint)
    if faults.found:
        return None
    carries_id = "properties" in endpoint.settings.carries
    return Target(
        label,
        settings.endpoint,
        for_templates(renderer, templates),
        tuple(templates),
        endpoint.allow,
        rules=rules,
        conversion=conversion,
        lossy=settings.lossy or any(each.fields for each in templates),
        when_full=WhenFull(settings.when_full) if settings.when_full else context.when_full,
        add_message_id=settings.add_message_id or (settings.observe is not None and carries_id),
        observe=settings.observe or "",
        broker=endpoint.broker,
        kind=kind_chosen_by_mapping(templates, source.pattern, dialect),
        payload_encoding=kind.payload_encoding,
        thin=None if settings.thin is None else Thin(settings.thin.seconds or 0.0),
        partition=partition,
    )


def _check_alone(settings: TargetSettings, source: SourceFacts, place: Place) -> None:
    """Report the faults of a target that are none of its endpoint, which is not known."""
    faults = _Faults(place)
    where = name_place(settings, "template")
    for text in written_templates(settings):
        with faults.of(where):
            check_placeholders(
                text,
                source.pattern,
                require_tags=source.tags.require_tags,
                constants=source.constants,
                report=partial(faults.report, where),
            )
    _contents(settings, source, faults)
    _partition(settings, source, faults)


def _partition(
    settings: TargetSettings, source: SourceFacts, faults: _Faults
) -> TextTemplate | int | None:
    """Return the template or the number of the partition; None without one, or with a fault."""
    if (text := settings.partition) is None:
        return None
    with faults.of("partition"):
        location = TextLocation("partition", text)
        template = parse_text_template(location, source.pattern, source.constants)
        if template.names:
            return template
        if re.fullmatch("0|[1-9][0-9]{0,9}", text) and int(text) <= MAX_PARTITION:
            return int(text)
        reason = f"{quoted(text)} is no number of a partition, and has no capture"
        faults.place["partition"].report(
            "partition", reason, "write a number from 0, or a text such as {line}"
        )
    return None


def _contents(
    settings: TargetSettings, source: SourceFacts, faults: _Faults
) -> tuple[HeaderRules, Conversion | None]:
    """Return the header rules and the conversion of a target; those with a fault do nothing."""
    rules = NO_RULES
    headers = settings.headers
    with faults.of("headers"):
        if headers != HeaderSettings():
            rules = parse_header_rules(
                maps=headers.map,
                renames=headers.rename,
                drops=headers.drop,
                keeps=headers.keep,
                sets=headers.set,
                source=source.pattern,
                constants=source.constants,
                report=partial(faults.report, "headers"),
            )
    conversion: Conversion | None = None
    with faults.of("payload" if settings.payload.picks else "encoding"):
        conversion = _conversion(settings, source, faults.place["payload"])
    return rules, conversion


@dataclass(slots=True)
class _Faults:
    """Reports the faults of a target, each at its key. Mutable: notes whether there is any."""

    place: Place
    found: bool = False

    def report(self, key: str, error: GatewayError, hint: str = "") -> None:
        self.found = True
        self.place[key].report(getattr(error, "rule", key), str(error), hint)

    @contextmanager
    def of(self, key: str, hint: Callable[[], str] = str) -> Iterator[None]:
        """Report the fault of one key, so that the other keys are read as well."""
        try:
            yield
        except GatewayError as error:
            self.report(key, error, hint())


def _conversion(settings: TargetSettings, source: SourceFacts, place: Place) -> Conversion | None:
    """Return the conversion of a target, None to keep payloads; report a form beside a pick.

    Raises:
        SubjectError: a field or a text to set is illegal, or the encoding unknown.
    """
    wanted = settings.payload
    if not wanted.picks:
        keeps = wanted.form == "keep"
        return None if keeps else parse_conversion(wanted.form, settings.encoding)
    if wanted.form != "keep":
        reason = f"`pick` and `set` make JSON, and `form` wants {wanted.form}"
        place["form"].report("payload", reason, "leave `form` out")
    return parse_pick(
        pick=wanted.pick,
        sets=wanted.set,
        max_size=wanted.max,
        encoding=settings.encoding,
        source=source.pattern,
        constants=source.constants,
    )


def _label(route: RouteSettings, index: int) -> str:
    """Return the name of the endpoint, numbered from its second target on."""
    endpoint = route.targets[index].endpoint
    earlier = sum(each.endpoint == endpoint for each in route.targets[:index])
    return f"{endpoint}:{earlier + 1}" if earlier else endpoint
