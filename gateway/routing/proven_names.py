"""Names that come back: the property `gateway_name` of a copy, believed where it is proven.

A route with `names_of` takes what another route of its mapping, the *writer*, wrote to this
endpoint. Anybody may have written a property, so it counts only where the writer makes exactly
this name of it: by its pattern and its exclusions, its template, and what its target allows. The
templates of the route then see the captures of the writer.

`Route.names_of` is the writer with its targets at this endpoint. The pattern of the route itself
selects only where such messages may be.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.dialects.base import parse_subject
from gateway.errors import IllegalNameError, TranslationError
from gateway.model.message import SOURCE_NAME
from gateway.routing.message_fields import MAX_FIELD_BYTES, SOURCE_FIELD, FieldValue, FieldValues
from gateway.routing.route import Route
from gateway.routing.tags import Tag, TagSelection, parse_tags, select_tags


def proven(writer: Route, name: str, claimed: FieldValue) -> TagSelection | None:
    """Return the selection of which `writer` makes `name`; None where `claimed` is not proven.

    `claimed` is the name at the source of `writer`, as a message has it. The cost is that of one
    translation, and none for a text longer than any name.
    """
    if not isinstance(claimed, str) or len(claimed) > MAX_FIELD_BYTES:
        return None
    try:
        tags = parse_tags(claimed, writer.dialect)
        selections = select_tags(tags, writer.tags, writer.source, writer.takes)
    except (IllegalNameError, TranslationError):
        return None
    return next((each for each in selections if _makes(writer, each, name)), None)


def taken_as(route: Route, name: str, values: FieldValues) -> TagSelection | str:
    """Return the name as `route` takes it, with its captures, or why the route does not take it.

    `values` has the fields of the message, if there is one; `name` is not a list of tags.

    Raises:
        IllegalNameError, TranslationError: the source has no such name.
    """
    subject = parse_subject(name, route.dialect)
    if why_not := route.why_not(subject.levels):
        return why_not
    if route.names_of is None:
        return TagSelection(Tag(name, subject), route.source.capture(subject.levels), ())
    if found := proven(route.names_of, name, values.get(SOURCE_FIELD)):
        return found
    needed = (
        f"it needs the property {SOURCE_NAME!r} with a name from which that route makes this one"
    )
    return f"it takes what route {route.names_of.name!r} wrote: {needed}"


def _makes(writer: Route, selection: TagSelection, name: str) -> bool:
    for target in writer.targets:
        try:
            if target.name_for(selection.tag.subject, selection.captures) == name:
                return True
        except TranslationError:
            continue
    return False


def written_to(writer: Route, endpoint: str) -> Route:
    """Return `writer` with its targets at an endpoint, as `Route.names_of` of a route there."""
    over = writer.over_names
    targets = tuple(each for each in writer.targets if each.endpoint == endpoint)
    share = over.source.share
    source = replace(over.source, text=over.source.text.removeprefix(share), share="")
    return replace(over, source=source, targets=targets, selector=None)
