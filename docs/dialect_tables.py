"""The tables of the naming rules: facts and limits of each system, and translated examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import yaml

from gateway.dialects.brokers import BROKERS
from gateway.dialects.dialect import Dialect, WildcardPlacement
from gateway.dialects.first_character import PrefixMapping
from gateway.dialects.parts import BOUNDARY
from gateway.dialects.registry import DIALECTS, find_dialect
from gateway.errors import SubjectError, TranslationError
from gateway.model.limits import Limit
from gateway.translate.names import Renderer, Translator
from gateway.translate.subscriptions import translate_pattern

PLACEMENTS = {
    WildcardPlacement.ALONE: "",
    WildcardPlacement.PLAIN: "; an ordinary character inside a {noun}",
    WildcardPlacement.PREFIX: ", or at the end of one behind a prefix",
    WildcardPlacement.INNER: ", or any part of one",
    WildcardPlacement.TAG: "; inside one, up to its end",
}


def overview(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each system: its page, its words and its wildcards."""
    del arguments, lines
    rows = [["system", "a level is called", "separator", "one level", "any levels"]]
    for name, dialect in DIALECTS.items():
        minimum = "none or more" if dialect.any_many_minimum == 0 else "one or more"
        page = f"[{name}](dialects/{name}.md)"
        rest = f"{_code(dialect.any_many)}, {minimum}"
        separator, one = _code(dialect.separator), _code(dialect.any_one)
        rows.append([page, dialect.level_noun, separator, one, rest])
    return _table(rows)


def facts(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Two columns with the facts and limits of the system that is the argument."""
    del lines
    (name,) = arguments
    dialect = find_dialect(name)
    return _table([["fact", "value"], *map(list, _facts(dialect))])


def brokers(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each known broker with the limits that its name stands for."""
    del arguments, lines
    rows = [["`limits`", "broker", "stands for", "stated or measured in"]]
    for name, known in BROKERS.items():
        limits = yaml.safe_dump(
            {key: _plain(value) for key, value in known.limits.set_fields().items()},
            default_flow_style=True, sort_keys=False, width=1_000,
        )  # fmt: skip
        sources = ", ".join(f"<{each}>" if "://" in each else each for each in known.sources)
        rows.append([_code(name), known.title, _code(limits.strip()), sources])
    return _table(rows)


def names(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The names of the first column, translated to every other system."""
    return _examples(arguments, lines, _translated_name)


def subscriptions(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The subscriptions of the first column, translated to every other system."""
    return _examples(arguments, lines, _translated_subscription)


def _facts(dialect: Dialect) -> Iterator[tuple[str, str]]:
    yield from _syntax_facts(dialect)
    yield from _character_facts(dialect)
    yield from _prefix_facts(dialect)
    yield from _limit_facts(dialect)
    yield "reference", dialect.reference


def _syntax_facts(dialect: Dialect) -> Iterator[tuple[str, str]]:
    noun = dialect.level_noun
    yield "a level is called", noun
    leading = f", and every name begins with {_code(dialect.leading)}" if dialect.leading else ""
    yield "separator", _code(dialect.separator) + leading
    if dialect.key is not None:
        yield "a key stands behind", _code(BOUNDARY)
        yield "the facts below are those of", "the topic"
    if dialect.tag_lists:
        yield "tag lists", "a message carries several names, separated by `,`"
    placement = PLACEMENTS[dialect.wildcard_placement].format(noun=noun)
    yield f"one {noun}", f"{_code(dialect.any_one)} as a whole {noun}{placement}"
    position = "at any position" if dialect.any_many_anywhere else "at the end"
    minimum = "none or more" if dialect.any_many_minimum == 0 else "one or more"
    yield f"any {noun}s", f"{_code(dialect.any_many)} {position}, {minimum}"
    yield f"empty {noun}s", _empty_levels(dialect)
    if dialect.shared_prefix:
        yield "a shared subscription begins with", _code(dialect.shared_prefix)


def _character_facts(dialect: Dialect) -> Iterator[tuple[str, str]]:
    noun = dialect.level_noun
    if dialect.alphabet:
        yield f"characters of a {noun}, and no others", _code(dialect.alphabet.replace("\\", ""))
    if dialect.forbidden_topics:
        yield "texts that no topic is", _codes(dialect.forbidden_topics)
    if dialect.forbidden:
        yield "characters that no name contains", _codes(dialect.forbidden)
    if dialect.reserved_levels:
        yield f"{noun}s that no name contains", _codes(dialect.reserved_levels)
    if dialect.swapped_characters:
        yield "characters that change places", _codes(dialect.swapped_characters)
    if dialect.inbox_levels:
        yield f"a {noun} that is a client's inbox", _codes(dialect.inbox_levels)
    if dialect.warn_unprintable:
        yield "legal, with a warning", "spaces and unprintable characters"


def _limit_facts(dialect: Dialect) -> Iterator[tuple[str, str]]:
    noun = dialect.level_noun
    for limit in dialect.limits:
        yield f"limit in {limit.unit.value}", _limit(limit, noun)
    if not dialect.limits:
        yield "limits", "none stated"
    for limit in dialect.advised_limits:
        yield f"warning above, in {limit.unit.value}", f"{_limit(limit, noun)} ({limit.reference})"


def _empty_levels(dialect: Dialect) -> str:
    if dialect.empty_levels == dialect.empty_levels_in_patterns:
        return "legal" if dialect.empty_levels else "illegal"
    return "legal in a name, illegal in a subscription"


def _prefix_facts(dialect: Dialect) -> Iterator[tuple[str, str]]:
    prefixes = dialect.exclusions.first_level_prefixes
    if prefixes:
        yield "no wildcard matches names that begin with", _codes(prefixes)
    if dialect.exclusions.whole_levels:
        whole = _codes(dialect.exclusions.whole_levels)
        yield f"no wildcard matches a {dialect.level_noun}", whole
    if dialect.server_levels:
        yield "first levels of the broker's own names, never sent to", _codes(dialect.server_levels)
    for rule in dialect.prefix_rules:
        if rule.mapping is PrefixMapping.SHIFT:
            allowed = rule.allowed_prefixes
            others = f", except {_codes(allowed)}" if allowed else ""
            yield "no name begins with", _code(rule.character) + others
        if rule.reserved:
            yield "names of the system, never sent to, begin with", _codes(rule.reserved)
        if rule.reply_only:
            yield "names of the system, for replies only, begin with", _codes(rule.reply_only)
        if rule.local:
            yield "names that never leave the system begin with", _codes(rule.local)


def _limit(limit: Limit, noun: str) -> str:
    if not limit.reserve:
        return f"{limit.maximum:,}"
    if limit.reserve_levels == 1:
        return f"{limit.maximum:,} less {limit.reserve} for each {noun}"
    received = (
        f"{limit.maximum}, {limit.maximum - limit.reserve} with {limit.reserve_levels} {noun}s"
    )
    share = f"{limit.reserve} x {noun}s / {limit.reserve_levels}"
    return f"{received}; a name made by the gateway: {limit.maximum} - ceil({share})"


def _examples(
    arguments: Sequence[str],
    lines: Sequence[str],
    translated: Callable[[str, Dialect, Dialect], str],
) -> list[str]:
    (system,) = arguments
    source = find_dialect(system)
    targets = [dialect for name, dialect in DIALECTS.items() if name != system]
    texts = [line.strip("| ").split(" | ")[0].strip("` ") for line in lines[2:]]
    header = [_code(dialect.name) for dialect in (source, *targets)]
    rows = [
        [_code(text), *(translated(text, source, target) for target in targets)] for text in texts
    ]
    return _table([header, *rows])


def _translated_name(name: str, source: Dialect, target: Dialect) -> str:
    try:
        return _code(Translator(source, Renderer(target)).name(name))
    except (SubjectError, TranslationError) as error:
        return f"refused: {error.rule}"


def _translated_subscription(text: str, source: Dialect, target: Dialect) -> str:
    try:
        found = translate_pattern(text, source, target)
    except (SubjectError, TranslationError) as error:
        return f"refused: {error.rule}"
    return ", ".join(map(_code, found.patterns)) + ("" if found.exact else " + test")


def _plain(value: int | str | tuple[str, ...]) -> object:
    return list(value) if isinstance(value, tuple) else value


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(map(_code, texts))


def _code(text: str) -> str:
    if text.isspace() or not text.isprintable():
        return ", ".join(f"U+{ord(char):04X}" for char in text)
    return f"`{text}`"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    header, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return [header, f"|{' --- |' * len(rows[0])}", *rest]
