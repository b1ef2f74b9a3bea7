"""Names as publishers send to them: read, checked and spelled; subscriptions are `patterns`."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import over_limit
from gateway.errors import LimitError, SubjectError, TranslationError, shown
from gateway.model.subject import Subject

WILDCARDS = "*>+#"


def read_name(text: str, dialect: Dialect) -> tuple[str, ...]:
    """The levels of a name that can come in from `dialect`, in its own spelling.

    Names the system keeps for itself (`$sys.monitor...`, `_RV...`, `#P2P/...`) can come in; see
    `check_name` for what a client may send to.

    Raises:
        SubjectError: the text breaks a rule of the dialect.
    """
    levels = split(text, dialect)
    found = dialect.forbidden_in(text)
    if found is not None:
        raise SubjectError(dialect.name, text, found.start(), *_fault(found[0]))
    _check_levels(levels, text, dialect)
    check_read(text, levels, dialect)
    return levels


def check_name(text: str, dialect: Dialect) -> None:
    """Raise SubjectError unless a client may publish to `text`; YAMI4: to a whole tag list."""
    if dialect.tag_lists:
        for levels in read_tags(text, dialect):
            own_name(levels, text, dialect)
        return
    own_name(read_name(text, dialect), text, dialect)


def own_name(levels: Sequence[str], text: str, dialect: Dialect) -> None:
    """Raise SubjectError when the name's first level belongs to the system itself."""
    for rule in dialect.first:
        if levels[0].startswith(rule.own):
            reason = f"names that begin with {levels[0]!r} belong to the system"
            raise SubjectError(dialect.name, text, 0, "reserved", reason)


def read_tags(text: str, dialect: Dialect) -> tuple[tuple[str, ...], ...]:
    """The names in a tag list; elsewhere a text is one name (YAMI4 book, 7.2.1)."""
    if not dialect.tag_lists:
        return (read_name(text, dialect),)
    check_text(text, dialect)
    return tuple(read_name(tag, dialect) for tag in text.split(","))


def parse_subject(text: str, dialect: Dialect) -> Subject:
    """Read a name as the middle has it, unescaped; names of every system meet there.

    Raises:
        SubjectError: it is illegal, or never leaves its system (Rendezvous `_LOCAL`).
    """
    return Subject(unescape(read_name(text, dialect), text, dialect))


def unescape(levels: tuple[str, ...], text: str, dialect: Dialect) -> tuple[str, ...]:
    """`levels` of `dialect` as the middle has them; `text` is for the error."""
    for rule in dialect.first:
        if rule.local and levels[0].startswith(rule.local):
            reason = f"{levels[0]!r} names never leave the system"
            raise SubjectError(dialect.name, text, 0, "local", reason)
    codec = dialect.codec
    if codec.suspect.search(text) is None and levels[0][:1] not in codec.first_characters:
        return levels  # nothing in it is a token
    return tuple(codec.decode(levels))


def render_subject(subject: Subject, dialect: Dialect, *, replies: bool = False) -> str:
    """Spell `subject` in `dialect`, escaped; `parse_subject` is the way back.

    Names of the target's own (`$sys`, `_RV`, a Solace client's inbox) are refused; with `replies`
    those that a reply may have to reach are not (`$TMP$`, `#P2P`).

    Raises:
        TranslationError: it cannot be sent to there; LimitError: it is too long or too deep.
    """
    if not subject.levels:
        raise TranslationError(dialect.name, "", "empty-name", "a subject has one level at least")
    return spell(dialect.codec.encode(subject.levels), dialect, replies=replies)


def spell(levels: Sequence[str], dialect: Dialect, *, replies: bool = False) -> str:
    """Join escaped `levels`, and refuse what `dialect` does not take; see `render_subject`."""
    text = dialect.leading + dialect.separator.join(levels)
    if not text and not dialect.tag_lists:
        raise TranslationError(dialect.name, text, "empty-name", "the whole name is empty")
    if surrogate_in(text) is not None:
        raise TranslationError(dialect.name, text, "surrogate", "a surrogate is no character")
    refuse_own(levels, text, dialect, replies=replies)
    over = over_limit(text, levels, dialect, made=True)
    if over is not None:
        limit, actual, most = over
        raise LimitError(dialect.name, text, limit.rule, limit.unit.value, actual, most)
    if dialect.also:
        refuse_joined(levels, text, dialect, replies=replies)
    return text


def refuse_own(levels: Sequence[str], text: str, dialect: Dialect, *, replies: bool) -> None:
    """Raise TranslationError when a client may not send to, or must not be led to, this name."""
    for rule in dialect.first:
        own = rule.reserved if replies else rule.own
        if levels[0].startswith(own):
            reason = f"names that begin with {levels[0]!r} belong to the system"
            raise TranslationError(dialect.name, text, "reserved", reason)
    if dialect.inboxes and not replies and any(level in dialect.inboxes for level in levels):
        reason = f"a {dialect.inboxes[0]!r} level is the inbox of one client"
        raise TranslationError(dialect.name, text, "inbox", reason)


def split(text: str, dialect: Dialect) -> tuple[str, ...]:
    """The levels of a name or pattern, unchecked but for what makes them up."""
    check_text(text, dialect)
    if dialect.leading and not text.startswith(dialect.leading):
        reason = f"it does not begin with {dialect.leading!r}"
        raise SubjectError(dialect.name, text, 0, "no-leading-separator", reason)
    return tuple(text.removeprefix(dialect.leading).split(dialect.separator))


def check_text(text: str, dialect: Dialect) -> None:
    """Raise SubjectError for what is no name in any system that has text."""
    at = surrogate_in(text)
    if at is not None:
        reason = "a surrogate is no character and has no UTF-8"
        raise SubjectError(dialect.name, text, at, "surrogate", reason)
    if not text and not dialect.tag_lists:
        raise SubjectError(dialect.name, text, 0, "empty-name", "it is empty")


def surrogate_in(text: str) -> int | None:
    """Where `text` has a code point that no UTF-8 can carry."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _fault(char: str) -> tuple[str, str]:
    if char in WILDCARDS:
        return "wildcard-in-name", f"{char!r} is a wildcard, and this is a name"
    if char == "\0":
        return "nul", "NUL cannot stand in it"
    return "tag-list", "a comma separates tags, and this is one name"


def _check_levels(levels: tuple[str, ...], text: str, dialect: Dialect) -> None:
    if not dialect.empty_levels and "" in levels:
        raise empty_level(levels, text, dialect)
    if dialect.whole and not dialect.whole_set.isdisjoint(levels):
        at = next(at for at, level in enumerate(levels) if level in dialect.whole)
        reason = f"{levels[at]!r} is a wildcard when it fills a {dialect.part}"
        raise SubjectError(
            dialect.name, text, offset(levels, at, dialect), "wildcard-in-name", reason
        )
    check_first(levels[0], text, dialect)


def check_first(level: str, text: str, dialect: Dialect) -> None:
    """Raise SubjectError when no name of the system begins like `level`."""
    for rule in dialect.forbidding:
        if level.startswith(rule.char) and not level.startswith(rule.known):
            reason = f"{rule.char!r} cannot be the first character"
            raise SubjectError(dialect.name, text, len(dialect.leading), "forbidden-first", reason)


def empty_level(levels: Sequence[str], text: str, dialect: Dialect) -> SubjectError:
    at = levels.index("")
    reason = f"{dialect.part} {at + 1} is empty"
    return SubjectError(dialect.name, text, offset(levels, at, dialect), "empty-element", reason)


def offset(levels: Sequence[str], at: int, dialect: Dialect) -> int:
    """Where level number `at` begins in the text."""
    return len(dialect.leading) + sum(map(len, levels[:at])) + at * len(dialect.separator)


def check_read(text: str, levels: Sequence[str], dialect: Dialect) -> None:
    """Raise SubjectError when a text that comes in is past a limit."""
    over = over_limit(text, levels, dialect, made=False)
    if over is not None:
        limit, actual, most = over
        reason = f"is {actual} {limit.unit.value}, limit {most}"
        raise SubjectError(dialect.name, text, 0, limit.rule, reason)


def restated(levels: Sequence[str], dialect: Dialect, other: Dialect) -> str:
    """A name of `dialect` as its server spells it in `other`.

    The separators change, and an ordinary character that separates there becomes ours
    (EMS User's Guide, "Destination Name Syntax and Semantics" of chapters 15 and 16).
    """
    if other.separator == dialect.separator:
        return other.leading + other.separator.join(levels)
    trade = str.maketrans(other.separator, dialect.separator)
    return other.leading + other.separator.join(level.translate(trade) for level in levels)


def check_joined(levels: Sequence[str], text: str, dialect: Dialect) -> None:
    """Raise SubjectError when a system that `dialect` is joined with has no such name."""
    for other in dialect.also:
        there = restated(levels, dialect, other)
        try:
            unescape(read_name(there, other), there, other)
        except SubjectError as error:
            raise SubjectError(dialect.name, text, 0, *_fault_there(there, other, error)) from error


def refuse_joined(levels: Sequence[str], text: str, dialect: Dialect, *, replies: bool) -> None:
    """Raise TranslationError when a joined system has no such name, or keeps it for itself."""
    for other in dialect.also:
        there = restated(levels, dialect, other)
        try:
            read = read_name(there, other)
            unescape(read, there, other)
            refuse_own(read, there, other, replies=replies)
        except (SubjectError, TranslationError) as error:
            fault = _fault_there(there, other, error)
            raise TranslationError(dialect.name, text, *fault) from error


def _fault_there(
    there: str, other: Dialect, error: SubjectError | TranslationError
) -> tuple[str, str]:
    """The rule, with the name of the system that refuses, and the reason."""
    reason = f"{other.name} does not take {shown(there)}: {error.reason}"
    return f"{other.name}-{error.rule}", reason
