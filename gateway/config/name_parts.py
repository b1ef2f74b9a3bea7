"""Names in two parts in a file: `topic` and `key` are another spelling of one text, `TOPIC:KEY`."""

from __future__ import annotations

import re

from gateway.config.place import Place
from gateway.config.schema import SourceSettings, TargetSettings
from gateway.dialects.base import Dialect
from gateway.dialects.parts import BOUNDARY

RULE = "name-parts"
_BRACES = re.compile(r"\{[^{}]*\}")


def written_pattern(source: SourceSettings) -> str:
    """Return the pattern of a source as one text, whatever its dialect; "" for `names_of`."""
    return source.pattern if source.topic is None else _joined(source)


def written_templates(target: TargetSettings) -> tuple[str, ...]:
    """Return the templates of a target, each as one text, whatever its dialect."""
    return target.template or () if target.topic is None else (_joined(target),)


def check_parts(settings: SourceSettings | TargetSettings, dialect: Dialect, place: Place) -> bool:
    """Report parts that do not fit each other or the dialect; return whether there are none."""
    whole = "pattern" if isinstance(settings, SourceSettings) else "template"
    before = len(place.reader.findings)
    if settings.topic is None:
        if settings.key is not None:
            instead = f" in place of `{whole}`" if getattr(settings, whole) else ""
            hint = f"write `topic`{instead}"
            place["key"].report(RULE, "a `key` stands beside a `topic` only", hint)
    elif getattr(settings, whole):
        reason = f"`topic` stands in place of `{whole}`, and both are written"
        place["topic"].report(RULE, reason, f"leave `{whole}` out")
    elif dialect.key is None:
        reason = f"`topic` and `key` name a place of kafka, and this is {dialect.name}"
        place["topic"].report(RULE, reason, f"write the whole name as `{whole}`")
    elif BOUNDARY in _BRACES.sub("", settings.topic):
        reason = f"a topic has no {BOUNDARY!r}"
        place["topic"].report(RULE, reason, "write what stands behind it as the `key`")
    return len(place.reader.findings) == before


def check_long_names(on_too_long: str | None, dialect: Dialect, place: Place) -> None:
    """Report short names where a name has a topic: nobody made the topic of a short name."""
    if on_too_long == "shorten" and dialect.key is not None:
        reason = "a topic has no short form: it would be one that nobody made"
        place.report(RULE, reason, "write `refuse`, and what is long into the `key`")


def name_place(settings: SourceSettings | TargetSettings, whole: str) -> str:
    """Return the key of the file that has the name: `whole`, or `topic`."""
    return whole if settings.topic is None else "topic"


def _joined(settings: SourceSettings | TargetSettings) -> str:
    key = "" if settings.key is None else f"{BOUNDARY}{settings.key}"
    return f"{settings.topic}{key}"
