"""Values for the fields of messages in a template, chosen so that a name becomes a wanted one.

Whoever publishes picks a field, so a proof counts each as a level of any text. A field that stands
twice in a name has one text; different fields are independent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gateway.model.pattern import Glob, Level, Literal, Pattern
from gateway.proofs.flows.target_expressions import selected_patterns
from gateway.proofs.search.examples import find_example
from gateway.routing.route import Target
from gateway.routing.template import FieldPlaceholder, Placeholder, RestPlaceholder, Template
from gateway.routing.template_functions import Levels, apply_functions

STAND_IN = "x"
_Parts = list[str | FieldPlaceholder]  # of one level
_Texts = dict[str, str]  # of fields, by name


def choose_fields(
    target: Target, captures: Mapping[str, Levels], goals: Sequence[Pattern] = ()
) -> dict[str, Levels]:
    """Return a value for each field in the names of `target`, as a capture.

    With them, `captures` make a name of the first of `goals` that has one, or else a name that the
    endpoint allows. Functions of the template may make another name of them.

    Raises:
        TranslationError: a function of the template does not find its part in a capture.
        SearchBudgetExceeded: the search became too long.
    """
    allowed = [pattern for each in target.allow for pattern in selected_patterns(each)]
    levels = [parts for template in target.templates[:1] for parts in _parts(template, captures)]
    within = [allowed] if allowed else []
    wanted = [*([*within, [goal]] for goal in goals), within, []]
    tried = (_values(levels, each) for each in wanted)
    values = next((each for each in tried if each is not None), {})
    names = dict.fromkeys(each.name for each in target.name_fields)
    return {name: (values.get(name, STAND_IN),) for name in names}


def _values(levels: Sequence[_Parts], wanted: Sequence[Sequence[Pattern]]) -> _Texts | None:
    """Return the fields of a name that is in each of `wanted`; None where none is found."""
    made = find_example([[Pattern(tuple(map(_level, levels)))], *wanted])
    if made is None:
        return None
    texts: dict[str, dict[str, None]] = {}
    for parts, text in zip(levels, made, strict=False):
        for name, found in _aligned(parts, text).items():
            texts.setdefault(name, {})[found] = None
    unequal = next((name for name, found in texts.items() if len(found) > 1), None)
    if unequal is None:
        return {name: text for name, (text,) in texts.items()}
    for text in texts[unequal]:
        filled = [
            [text if _is_field(part, unequal) else part for part in parts] for parts in levels
        ]
        if (others := _values(filled, wanted)) is not None:
            return {**others, unequal: text}
    return None


def _is_field(part: str | FieldPlaceholder, name: str) -> bool:
    return isinstance(part, FieldPlaceholder) and part.name == name


def _parts(template: Template, captures: Mapping[str, Levels]) -> list[_Parts]:
    """Return the levels of a name with its fields open."""
    found: list[_Parts] = []
    for level in template.levels:
        if isinstance(level, RestPlaceholder):
            found += [[text] for text in apply_functions(level.functions, captures[level.name])]
            continue
        parts: _Parts = []
        for part in level.parts:
            parts.append(part.fill(captures) if isinstance(part, Placeholder) else part)
        found.append(parts)
    return found


def _level(parts: _Parts) -> Level:
    texts = [""]
    for part in parts:
        if isinstance(part, str):
            texts[-1] += part
        else:
            texts.append("")
    return Literal(texts[0]) if len(texts) == 1 else Glob(_joined(texts), len(texts) - 1)


def _joined(texts: Sequence[str]) -> tuple[str, ...]:
    return (texts[0], *filter(None, texts[1:-1]), texts[-1])


def _aligned(parts: _Parts, text: str) -> dict[str, str]:
    """Return the fields of one level whose text is `text`; none where they do not fit."""
    names: list[str] = []
    pattern = ""
    for part in parts:
        if isinstance(part, str):
            pattern += re.escape(part)
        elif part.name in names:
            pattern += f"(?P=f{names.index(part.name)})"
        else:
            pattern += f"(?P<f{len(names)}>.+?)"
            names.append(part.name)
    found = re.fullmatch(pattern, text, re.DOTALL)
    return {} if found is None else {name: found[f"f{at}"] for at, name in enumerate(names)}
