"""Text templates for header values: `desk {desk|upper}` makes plain text from captures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.routing.source_pattern import SourcePattern
from gateway.routing.template import NO_CONSTANTS, LevelPart, RestPlaceholder, find_placeholders
from gateway.routing.template_functions import Levels, TextLocation


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """A parsed text template; `parts` are plain texts and placeholders, in order."""

    text: str
    parts: tuple[LevelPart, ...]

    @property
    def fixed(self) -> str | None:
        """The text, when the template has no capture; otherwise None."""
        texts = [part for part in self.parts if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(self.parts) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the captures in the template, in order."""
        return tuple(part.name for part in self.parts if not isinstance(part, str))

    def expand(self, captures: Mapping[str, Levels]) -> str:
        """Return the text for these captures.

        Raises:
            TranslationError: a function does not find the part that it needs.
        """
        return "".join(
            part if isinstance(part, str) else part.fill(captures) for part in self.parts
        )


def parse_text_template(
    location: TextLocation, source: SourcePattern, constants: Mapping[str, str] = NO_CONSTANTS
) -> TextTemplate:
    """Parse the text of `location`, which may use the captures of `source`.

    Raises:
        SubjectError: an unknown capture, a wrong function, a stray brace, or a capture of
            several levels that is not joined.
    """
    parts: list[LevelPart] = []
    position = 0
    for placeholder in find_placeholders(location, source, constants=constants):
        if isinstance(placeholder.part, RestPlaceholder):
            name = placeholder.part.name
            reason = f"{{{name}...}} is many levels; join them: {{{name}...|join:/}}"
            raise location.error("rest-capture", reason, placeholder.start)
        parts += [location.text[position : placeholder.start], placeholder.part]
        position = placeholder.stop
    parts.append(location.text[position:])
    return TextTemplate(location.text, tuple(part for part in parts if part != ""))
