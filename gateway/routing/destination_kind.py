"""The kind of a destination, such as a queue, where the start of a name tells it, and its choice.

The mapping's own text chooses the kind; the text of a publisher may not.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.base import Dialect
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import DESTINATION_KIND
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.template import Template


def kind_chosen_by_mapping(
    templates: Sequence[Template], source: SourcePattern, dialect: Dialect
) -> str:
    """Return the kind prefix that the mapping's own text gives to the names of a target.

    Without a template that text is the pattern of the source.
    """
    return dialect.find_kind(templates[0].text if templates else source.text)


def refuse_kind_chosen_by_publisher(name: str, kind: str, dialect: Dialect) -> None:
    """Raise TranslationError unless `name` has `kind`, the one that the mapping chooses."""
    found = dialect.find_kind(name)
    if found != kind:
        reason = f"only a template's own text may begin with {found!r}; begin it with that text"
        raise TranslationError(dialect.name, name, DESTINATION_KIND, reason)
