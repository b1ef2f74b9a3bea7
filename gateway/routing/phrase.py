"""Texts with captures in them, for header values: `desk {desk|upper}`; not names, and not checked.

A template makes a subject, which a target may have to escape; a phrase makes plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.routing.captures import SourcePattern
from gateway.routing.functions import Levels, Place
from gateway.routing.template import NO_CONSTANTS, Part, Rest, find_holes


@dataclass(frozen=True, slots=True)
class Phrase:
    """`parts` in order: plain text, and holes for captures."""

    text: str
    parts: tuple[Part, ...]

    @property
    def fixed(self) -> str | None:
        """Its text, when it has no capture."""
        texts = [part for part in self.parts if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(self.parts) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The captures it uses, in order."""
        return tuple(part.name for part in self.parts if not isinstance(part, str))

    def expand(self, captures: Mapping[str, Levels]) -> str:
        """The text for these captures.

        Raises:
            TranslationError: a function does not find in them what it asks for.
        """
        return "".join(
            part if isinstance(part, str) else part.fill(captures) for part in self.parts
        )


def parse_phrase(
    place: Place, source: SourcePattern, constants: Mapping[str, str] = NO_CONSTANTS
) -> Phrase:
    """Read the text of `place`, which may use the captures of `source`.

    Raises:
        SubjectError: an unknown capture, a wrong function, a stray brace, or a capture of many
            levels that is not joined.
    """
    parts: list[Part] = []
    position = 0
    for hole in find_holes(place, source, constants=constants):
        if isinstance(hole.part, Rest):
            name = hole.part.name
            reason = f"{{{name}...}} is many levels; join them: {{{name}...|join:/}}"
            raise place.fault("rest-capture", reason, hole.start)
        parts += [place.text[position : hole.start], hole.part]
        position = hole.stop
    parts.append(place.text[position:])
    return Phrase(place.text, tuple(part for part in parts if part != ""))
