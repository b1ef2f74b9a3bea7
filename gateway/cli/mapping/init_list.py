"""The routes of a list of names for `gateway init`: one for each first level, or topic of Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.cli.mapping.init_text import Names, names_of, rest_of
from gateway.dialects.base import parse_subject
from gateway.dialects.parts import BOUNDARY
from gateway.dialects.registry import find_dialect
from gateway.endpoints.registry import starters
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.routing.source_pattern import parse_source
from gateway.translate.names import Renderer, Translator

MAX_ROUTES: Final = 100  # of one list; a mapping with more is not a first one


def names_of_list(path: Path, source: str, target: str) -> list[Names]:
    """Return the names of each route, in the order of the list.

    A name of one level has a route of its own where the pattern for more levels leaves it out.

    Raises:
        GatewayError: the file cannot be read or has no name; a name is none of the source, or none
            that the target can have; there are too many first levels.
    """
    here, there = (find_dialect(starters()[each][1].dialect) for each in (source, target))
    translator = Translator(here, Renderer(there))
    found: dict[str, Names] = {}  # by pattern
    alone: dict[str, str] = {}  # patterns of one level, and those that may select them
    for number, name in _lines(path):
        if "{" in name:
            raise GatewayError(f"{path}:{number}: {name!r}: a pattern cannot have braces")
        try:
            levels, made = len(parse_subject(name, here).levels), translator.name(name)
        except (SubjectError, TranslationError) as error:
            raise GatewayError(f"{path}:{number}: {error}") from error
        if here.key is not None:
            topic = name.partition(BOUNDARY)[0]
            pattern = topic + rest_of(here)
            found[pattern] = names_of(pattern, source, target)
        elif levels == 1:
            found[name], alone[name] = Names(name, made), name + rest_of(here)
        else:
            first, start = name.partition(here.separator)[0], made.partition(there.separator)[0]
            pattern = first + rest_of(here)
            found[pattern] = Names(pattern, start + rest_of(there))
        if len(found) > MAX_ROUTES:
            reason = f"more than {MAX_ROUTES} first levels"
            raise GatewayError(f"{path}:{number}: {reason}; write a pattern with --names")
    if not found:
        raise GatewayError(f"{path}: has no name; write one per line")
    for name, pattern in alone.items():
        if pattern in found and parse_source(pattern, here).selects(
            parse_subject(name, here).levels
        ):
            del found[name]
    return [*found.values()]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines with a name, and their numbers from 1 on."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if name := line.rstrip("\r\n"):
                    yield number, name
    except OSError as error:
        raise GatewayError(f"{path}: cannot read the names: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GatewayError(f"{path}: the names are not in UTF-8") from error
