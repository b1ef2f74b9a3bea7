"""Names: parsing, checking and rendering the names to which publishers send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.dialects.dialect import TAG_SEPARATOR, Dialect
from gateway.dialects.name_size import exceeded_limit
from gateway.dialects.parts import BOUNDARY
from gateway.errors import (
    IllegalNameError,
    LimitError,
    SubjectError,
    TranslationError,
    quoted,
)
from gateway.model.closing_characters import closing_character, why_refused
from gateway.model.dead_letter_rule import (
    CONTROL_CHARACTER,
    EMPTY_ELEMENT,
    EMPTY_NAME,
    FORBIDDEN_FIRST,
    FORBIDDEN_TOPIC,
    INBOX,
    LOCAL,
    MISPLACED_BOUNDARY,
    NO_LEADING_SEPARATOR,
    RESERVED,
    SURROGATE,
    WILDCARD_IN_NAME,
    DeadLetterRule,
)
from gateway.model.pattern import Literal, Pattern
from gateway.model.subject import Subject

T = TypeVar("T")
_MISPLACED = f"a level {BOUNDARY!r} stands between topic and key, and nowhere else"


def read_name(text: str, dialect: Dialect) -> tuple[str, ...]:
    """Return the levels of a name received from `dialect`, in its own spelling.

    Names of the system itself (`$sys.monitor...`, `_RV...`, `#P2P/...`) are accepted here.
    `check_name` accepts only names to which a client may send.

    Raises:
        IllegalNameError: the text violates a rule of the dialect.
    """
    if dialect.key is not None:
        return read_parts(text, dialect, read_name, BOUNDARY)
    levels = split_levels(text, dialect)
    found = dialect.find_forbidden(text)
    if found is not None:
        prohibition = dialect.prohibition(found[0])
        raise IllegalNameError(dialect.name, text, found.start(), *prohibition)
    _check_levels(levels, text, dialect)
    check_limits(text, levels, dialect)
    return levels


def read_parts(
    text: str, dialect: Dialect, read: Callable[[str, Dialect], tuple[T, ...]], boundary: T
) -> tuple[T, ...]:
    """Return the levels of a topic and its key, each read by `read`, with `boundary` between them.

    Raises:
        SubjectError: a part is illegal, or a level that is not the boundary reads as one.
    """
    topic, between, key = text.partition(BOUNDARY)
    start = 0
    found: list[T] = []
    try:
        found += read(topic, dialect.topic)
        start = len(topic) + len(between)
        found += [boundary] if between else []
        found += read(key, dialect.key) if key and dialect.key is not None else ()
    except SubjectError as error:
        at = start + error.offset
        raise type(error)(dialect.name, text, at, error.rule, error.reason) from None
    if dialect.misplaces_boundary(dialect.levels_of(text)):
        raise IllegalNameError(dialect.name, text, 0, MISPLACED_BOUNDARY, _MISPLACED)
    return tuple(found)


def check_name(text: str, dialect: Dialect) -> None:
    """Raise IllegalNameError unless a client may publish to `text`, a name or a tag list."""
    for levels in read_tags(text, dialect):
        fault = _reserved_fault(levels, dialect)
        if fault is not None and fault[0] is RESERVED:
            raise IllegalNameError(dialect.name, text, 0, *fault)


def system_fault(levels: Sequence[str], dialect: Dialect) -> tuple[DeadLetterRule, str] | None:
    """Return why a name stays in its system, as rule and reason; None for an ordinary name.

    `levels` are canonical. A route may take such a name when its pattern names it
    (`names_system`); nothing else translates it.
    """
    begins = levels and levels[0].startswith(dialect.system_starts)
    if begins or not dialect.system_levels.isdisjoint(levels):
        return _reserved_fault(dialect.codec.encode(levels), dialect)
    return None


def _reserved_fault(
    levels: Sequence[str], dialect: Dialect, *, replies: bool = False
) -> tuple[DeadLetterRule, str] | None:
    """Return why no client sends to a name, except with `replies`; None for an ordinary name.

    `levels` are as the system spells them.
    """
    for rule in dialect.prefix_rules:
        if levels[0].startswith(rule.reserved if replies else rule.system_prefixes):
            return RESERVED, f"names that begin with {levels[0]!r} belong to the system"
    inboxes = () if replies else dialect.inbox_levels
    if inboxes and any(level in inboxes for level in levels):
        return INBOX, f"a {inboxes[0]!r} level is the inbox of one client"
    return None


def names_system(pattern: Pattern, dialect: Dialect) -> bool:
    """Return whether a canonical pattern names the system's own names, not only by a wildcard."""
    first = next(iter(pattern.levels), None)
    start = first.text if isinstance(first, Literal) else getattr(first, "parts", ("",))[0]
    return start.startswith(dialect.system_starts) or any(
        isinstance(level, Literal) and level.text in dialect.system_levels
        for level in pattern.levels
    )


def read_tags(text: str, dialect: Dialect) -> tuple[tuple[str, ...], ...]:
    """Return the names of a tag list, or the one name of a dialect without tag lists."""
    if not dialect.tag_lists:
        return (read_name(text, dialect),)
    check_text(text, dialect)
    return tuple(read_name(tag, dialect) for tag in text.split(TAG_SEPARATOR))


def parse_subject(text: str, dialect: Dialect) -> Subject:
    """Parse a name into the canonical form, which all systems share.

    Raises:
        IllegalNameError: the name is illegal, or never leaves its system (Rendezvous `_LOCAL`).
    """
    return Subject(canonical_levels(read_name(text, dialect), text, dialect))


def canonical_levels(levels: tuple[str, ...], text: str, dialect: Dialect) -> tuple[str, ...]:
    """Convert `levels` of `dialect` to the canonical form; errors quote `text`."""
    for rule in dialect.prefix_rules:
        if rule.local and levels[0].startswith(rule.local):
            reason = f"{levels[0]!r} names never leave the system"
            raise IllegalNameError(dialect.name, text, 0, LOCAL, reason)
    codec = dialect.codec
    if codec.may_need_decoding(text) is None and (levels[0][:1] not in codec.rule_characters):
        return levels
    return tuple(codec.decode(levels))


def render_subject(subject: Subject, dialect: Dialect, *, replies: bool = False) -> str:
    """Render `subject` in `dialect`, escaped; `parse_subject` is the inverse.

    Names that belong to the target system (`$sys`, `_RV`, the inbox of a Solace client) are
    refused. With `replies`, those to which a reply may be sent are accepted (`$TMP$`, `#P2P`).

    Raises:
        TranslationError: no client may send to this name.
        LimitError: the name exceeds a limit.
    """
    if not subject.levels:
        raise TranslationError(dialect.name, "", EMPTY_NAME, "a subject has one level at least")
    return render_levels(dialect.codec.encode(subject.levels), dialect, replies=replies)


def render_levels(levels: Sequence[str], dialect: Dialect, *, replies: bool = False) -> str:
    """Join escaped `levels` and check the result; raises as `render_subject` does."""
    text = dialect.text_of(levels)
    if not text and not dialect.tag_lists:
        raise TranslationError(dialect.name, text, EMPTY_NAME, "the whole name is empty")
    if dialect.key is not None:
        _refuse_parts(levels, text, dialect)
    refuse_surrogate(text, dialect)
    if dialect.refuses_closing and not replies and (found := closing_character(text)):
        reason = why_refused(found, "topic name")
        raise TranslationError(dialect.name, text, CONTROL_CHARACTER, reason)
    refuse_reserved(levels, text, dialect, replies=replies)
    if dialect.refusals is not None and (fault := dialect.refusals.fault(levels)) is not None:
        raise TranslationError(dialect.name, text, *fault)
    if (error := too_long(text, levels, dialect)) is not None:
        raise error
    if dialect.joined:
        refuse_joined(levels, text, dialect, replies=replies)
    return text


def _refuse_parts(levels: Sequence[str], text: str, dialect: Dialect) -> None:
    """Raise TranslationError for a topic that is none, and for a boundary that is none."""
    topic, _ = dialect.limited(text, levels)
    if not topic:
        raise TranslationError(dialect.name, text, EMPTY_NAME, "the topic is empty")
    if topic in dialect.forbidden_topics:
        raise TranslationError(dialect.name, text, FORBIDDEN_TOPIC, f"no topic is {topic!r}")
    if dialect.misplaces_boundary(levels):
        raise TranslationError(dialect.name, text, MISPLACED_BOUNDARY, _MISPLACED)


def refuse_surrogate(text: str, dialect: Dialect) -> None:
    """Raise TranslationError when the text has no UTF-8."""
    if find_surrogate(text) is not None:
        raise TranslationError(dialect.name, text, SURROGATE, "a surrogate is no character")


def too_long(
    text: str, levels: Sequence[str], dialect: Dialect, *, made: bool = True
) -> LimitError | None:
    """Return the error of a name that the gateway makes, or of another text, past a limit."""
    exceeded = exceeded_limit(text, levels, dialect, made=made)
    if exceeded is None:
        return None
    limit, actual, maximum = exceeded
    return LimitError(dialect.name, text, limit.rule, limit.unit.value, actual, maximum)


def refuse_reserved(levels: Sequence[str], text: str, dialect: Dialect, *, replies: bool) -> None:
    """Raise TranslationError when the name belongs to the system or is a client's inbox."""
    if (fault := _reserved_fault(levels, dialect, replies=replies)) is not None:
        raise TranslationError(dialect.name, text, *fault)


def split_levels(text: str, dialect: Dialect) -> tuple[str, ...]:
    """Split a name or pattern into levels; checks the text and the leading separator only."""
    check_text(text, dialect)
    if dialect.leading and not text.startswith(dialect.leading):
        reason = f"it does not begin with {dialect.leading!r}"
        raise IllegalNameError(dialect.name, text, 0, NO_LEADING_SEPARATOR, reason)
    return dialect.levels_of(text)


def check_text(text: str, dialect: Dialect) -> None:
    """Raise IllegalNameError for a text that no system takes: a surrogate, an empty name."""
    at = find_surrogate(text)
    if at is not None:
        reason = "a surrogate is no character and has no UTF-8"
        raise IllegalNameError(dialect.name, text, at, SURROGATE, reason)
    if not text and not dialect.tag_lists:
        raise IllegalNameError(dialect.name, text, 0, EMPTY_NAME, "it is empty")


def find_surrogate(text: str) -> int | None:
    """Return the position of the first code point that UTF-8 cannot encode, or None."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _check_levels(levels: tuple[str, ...], text: str, dialect: Dialect) -> None:
    if not dialect.empty_levels and "" in levels:
        raise empty_level_error(levels, text, dialect)
    if dialect.reserved_levels and not dialect.reserved_level_set.isdisjoint(levels):
        index = next(at for at, level in enumerate(levels) if level in dialect.reserved_levels)
        reason = f"{levels[index]!r} is a wildcard when it fills a {dialect.level_noun}"
        offset = level_offset(levels, index, dialect)
        raise IllegalNameError(dialect.name, text, offset, WILDCARD_IN_NAME, reason)
    if text in dialect.forbidden_topics:
        raise IllegalNameError(dialect.name, text, 0, FORBIDDEN_TOPIC, f"no topic is {text!r}")
    check_first_character(levels[0], text, dialect)


def check_first_character(level: str, text: str, dialect: Dialect) -> None:
    """Raise IllegalNameError when no name of the system may begin with this first level."""
    for rule in dialect.forbidden_prefix_rules:
        if level.startswith(rule.character) and not level.startswith(rule.allowed_prefixes):
            reason = f"{rule.character!r} cannot be the first character"
            raise IllegalNameError(
                dialect.name, text, len(dialect.leading), FORBIDDEN_FIRST, reason
            )


def empty_level_error(levels: Sequence[str], text: str, dialect: Dialect) -> IllegalNameError:
    """Return the error for the first empty level of `text`."""
    index = levels.index("")
    reason = f"{dialect.level_noun} {index + 1} is empty"
    offset = level_offset(levels, index, dialect)
    return IllegalNameError(dialect.name, text, offset, EMPTY_ELEMENT, reason)


def level_offset(levels: Sequence[str], index: int, dialect: Dialect) -> int:
    """Return the offset in the text of the level number `index`."""
    separators = index * len(dialect.separator)
    return len(dialect.leading) + sum(map(len, levels[:index])) + separators


def check_limits(text: str, levels: Sequence[str], dialect: Dialect) -> None:
    """Raise IllegalNameError when a received text exceeds a limit."""
    if (error := too_long(text, levels, dialect, made=False)) is not None:
        raise IllegalNameError(dialect.name, text, 0, error.rule, error.reason)


def respelled(levels: Sequence[str], dialect: Dialect, other: Dialect) -> str:
    """Return a name of `dialect` as its server spells it in the joined system `other`.

    The server replaces the separators. It also replaces an ordinary character that is the
    separator there with the separator here (EMS User's Guide, "Destination Name Syntax and
    Semantics" of chapters 15 and 16).
    """
    if other.separator == dialect.separator:
        return other.leading + other.separator.join(levels)
    swap = str.maketrans(other.separator, dialect.separator)
    return other.leading + other.separator.join(level.translate(swap) for level in levels)


def check_joined(levels: Sequence[str], text: str, dialect: Dialect) -> None:
    """Raise IllegalNameError when the name is illegal in a system joined with `dialect`."""
    for other in dialect.joined:
        there = respelled(levels, dialect, other)
        try:
            parse_subject(there, other)
        except IllegalNameError as error:
            fault = _rule_and_reason(there, other, error)
            raise IllegalNameError(dialect.name, text, 0, *fault) from error


def refuse_joined(levels: Sequence[str], text: str, dialect: Dialect, *, replies: bool) -> None:
    """Raise TranslationError when the name is illegal or reserved in a joined system."""
    for other in dialect.joined:
        there = respelled(levels, dialect, other)
        try:
            found = read_name(there, other)
            canonical_levels(found, there, other)
            refuse_reserved(found, there, other, replies=replies)
        except (IllegalNameError, TranslationError) as error:
            fault = _rule_and_reason(there, other, error)
            raise TranslationError(dialect.name, text, *fault) from error


def _rule_and_reason(
    there: str, other: Dialect, error: IllegalNameError | TranslationError
) -> tuple[DeadLetterRule, str]:
    """Return the rule, prefixed with the name of the refusing system, and the reason."""
    reason = f"{other.name} does not take {quoted(there)}: {error.reason}"
    return error.rule.joined(other.name), reason
