"""The headers that a target carries: lost fields, the reply address, the gateway's properties."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Final, TypeAlias

from gateway.dialects.base import Dialect
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import HEADER_FIELDS, NO_HEADERS, Headers, Properties
from gateway.routing.route import Target
from gateway.routing.router import Delivery

OPTIONAL_FIELDS: Final = tuple(
    name
    for name in HEADER_FIELDS
    if name not in {"mode", "redelivered", "source_id", "time", "origin"}
)
MappedHeaders: TypeAlias = tuple[Headers, tuple[str, ...]]  # and the fields that were lost
optional_values: Final = attrgetter(*OPTIONAL_FIELDS)


def map_reply(
    headers: Headers, target: Target | None, dialect: Dialect, carries: frozenset[str]
) -> MappedHeaders:
    """Translate the reply address from the source's `dialect`, and list the lost fields.

    `carries` has the header fields that the target carries; its sink leaves out the others, so they
    stay in the headers, except a reply address without a form at the target.
    """
    lost = [
        field
        for field in OPTIONAL_FIELDS
        if field not in carries and getattr(headers, field) != getattr(NO_HEADERS, field)
    ]
    if headers.reply_to is not None and target is not None and "reply_to" not in lost:
        try:
            name = target.reply_name(dialect, headers.reply_to)
            headers = replace(headers, reply_to=name)
        except (SubjectError, TranslationError):
            lost.append("reply_to")
            headers = replace(headers, reply_to=None)
    return headers, tuple(lost)


def with_own(properties: Properties, delivery: Delivery) -> Properties:
    """Return the properties of a copy: with those that only the gateway writes at the target.

    Copies of messages without properties share the result.
    """
    own, removed = delivery.own, delivery.removed
    if not properties:
        return own
    if removed:
        properties = {key: value for key, value in properties.items() if key not in removed}
    return {**properties, **own} if own else properties
