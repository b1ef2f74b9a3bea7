"""Checks of targets and routes whose names, or header rules, use fields of the message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from gateway.config.name_parts import written_templates
from gateway.config.place import Place
from gateway.config.schema import TargetSettings
from gateway.dialects.base import Dialect
from gateway.routing.header_draft import REPLY_TO
from gateway.routing.header_rules import HeaderRules
from gateway.routing.message_fields import is_payload_field, level_fault
from gateway.routing.payload_pick import PayloadPick
from gateway.routing.route import Route, names_inboxes
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.template import FieldPlaceholder, Template, TextTemplate, fields_in

Fault: TypeAlias = tuple[str, str, str, str]  # rule, key of the target, reason and hint

_OPEN: Final = "open-template"
_ALLOW_HINT: Final = "write `allow` at the endpoint: the patterns of the names that may be made"


def field_faults(
    templates: Sequence[Template],
    rules: HeaderRules,
    dialect: Dialect,
    allow: Sequence[SourcePattern],
) -> Iterator[Fault]:
    """Yield the faults of the fields in the templates and the header rules of one target."""
    yield from _open_templates(templates, dialect, allow)
    for name, value in rules.sets:
        if name == REPLY_TO and isinstance(value, TextTemplate):
            for each in value.fields[:1]:
                reason = f"{_shown(each)} would pick where replies go"
                yield _OPEN, "headers", reason, "leave `reply_to` out of `set`"
    places = ("template", _fields(templates)), ("headers", rules.fields)
    for key, fields in places:
        for each in fields:
            if each.default and (fault := level_fault(each.default, dialect)):
                reason = f"the default of {_shown(each)} {fault}"
                yield "template", key, reason, "write a default that is one level"


def _open_templates(
    templates: Sequence[Template], dialect: Dialect, allow: Sequence[SourcePattern]
) -> Iterator[Fault]:
    for template in templates:
        for each in template.fields[:1]:
            if not allow:
                reason = f"{_shown(each)} lets whoever publishes pick any name of the endpoint"
                yield _OPEN, "template", reason, _ALLOW_HINT
            if names_inboxes(template.text, dialect):
                reason = f"{_shown(each)} would pick the client that gets a reply"
                yield _OPEN, "template", reason, "write a name that is no inbox"


def check_retained_fields(targets: Sequence[TargetSettings], place: Place) -> None:
    """Report the fields that the ends of retained messages lack; also beside other faults."""
    for index, target in enumerate(targets):
        names = [name for text in written_templates(target) for name in fields_in(text)]
        sets = [str(each) for each in target.headers.set.values()]
        sets += [*map(str, target.payload.set.values()), target.partition or ""]
        names += [name for text in sets for name, default in fields_in(text).items() if not default]
        if cleared := next(filter(is_payload_field, names), ""):
            reason = (
                f"{{{cleared}}}: the message that ends a retained one has no payload, so it would"
                " not end the copy"
            )
            place[index].report("retained-field", reason, "write `retained: ignore`")


def check_heartbeat_fields(route: Route, place: Place) -> None:
    """Report the fields of a route that its heartbeats lack."""
    for target in route.targets:
        needed = [each for each in (*target.name_fields, *target.other_fields) if not each.default]
        if route.heartbeat and needed:
            reason = f"a heartbeat has no {_shown(needed[0])}, which target {target.label!r} needs"
            hint = f"write {{{needed[0].name}|default:TEXT}}, or a route of its own for heartbeats"
            place["heartbeat"].report("heartbeat", reason, hint)
        if route.heartbeat and isinstance(target.conversion, PayloadPick):
            reason = f"a heartbeat is no JSON, of which target {target.label!r} picks fields"
            hint = "write a route of its own for heartbeats"
            place["heartbeat"].report("heartbeat", reason, hint)


def _fields(templates: Sequence[Template]) -> tuple[FieldPlaceholder, ...]:
    return tuple(each for template in templates for each in template.fields)


def _shown(field: FieldPlaceholder) -> str:
    return f"{{{field.name}}}"
