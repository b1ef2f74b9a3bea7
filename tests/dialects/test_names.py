from __future__ import annotations

from contextlib import suppress
from time import process_time

import pytest

from gateway.dialects.base import (
    check_name,
    parse_pattern,
    parse_subject,
    read_pattern,
    render_pattern,
    render_subject,
    warnings_of,
)
from gateway.dialects.registry import DIALECTS, find_dialect
from gateway.errors import GatewayError, LimitError, SubjectError, TranslationError
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.model.subject import Subject

EMS_64 = ".".join(["abc"] * 63 + ["abcd"])

LEGAL = [
    ("ems", "NEWS.LOCAL.POLITICS.CITY_COUNCIL"),
    ("ems", "finance"),
    ("ems", "News.Tennis.Stats.Roger\\.Federer"),  # the backslash escapes nothing
    ("ems", "a b.\t"),  # advised against, not forbidden
    ("ems", "a.$b"),
    ("ems", "n" * 127 + "." + "n" * 121),  # 249 characters
    ("ems", ".".join(["ab"] * 60 + ["a" * 7, "b", "c", "d"])),  # 196 at 64 elements
    ("rv", "_INBOX.A"),
    ("rv", "_LOCAL.A"),
    ("rv", "n" * 252 + ".xx"),
    ("mqtt", "/"),
    ("mqtt", "//"),
    ("mqtt", "/finance/"),
    ("mqtt", "$SYS/x"),
    ("mqtt", "é" * 32_767),
    ("ibm", "level0/#+/level4/level#"),
    ("ibm", "USA#"),
    ("smf", "a//b"),
    ("smf", "a/*/>"),
    ("smf", "é" * 125),
    ("smf", "/" * 127),
    ("smf", "#P2P/x"),
    ("yami4", ""),
    ("yami4", "a,,b*"),
    ("yami4", "." * 1_000),
    ("smartsockets", "/foo.bar/baz"),
    ("smartsockets", "/a/..../b"),
    ("nats", "a*.>b.é\u00a0"),
    ("nats", "é" * 2_000),
    ("rabbitmq", ".a..b*.#c."),
    ("rabbitmq", "amq.topic"),  # reserved for queues and exchanges alone
    ("rabbitmq", "a\0b c"),
    ("rabbitmq", "é" * 127),
    ("kafka", "n" * 249),
    ("kafka", "n" * 249 + ":" + "k" * 10_000),  # the limit is of the topic
    ("kafka", "..."),
    ("kafka", "A.b-c_9"),
    ("kafka", "a:"),
    ("kafka", "a:b:c. *.>.é\0"),
]

ILLEGAL = [
    ("ems", "", 0, "empty-name", "ems: '' at 0: it is empty"),
    ("ems", "News..Flood", 5, "empty-element", "element 2 is empty"),
    ("ems", "WRONG.", 6, "empty-element", "element 2 is empty"),
    ("ems", ".TRIPLE.WRONG..", 0, "empty-element", "element 1 is empty"),
    ("ems", "a.*", 2, "wildcard-in-name", "'*' is a wildcard"),
    ("ems", "a>b", 1, "wildcard-in-name", "'>' is a wildcard"),
    ("ems", "$x", 0, "forbidden-first", "'$' cannot be the first character"),
    ("ems", "$sys.monitor.x", 0, "reserved", "belong to the system"),
    ("ems", "$TMP$.x", 0, "reserved", "belong to the system"),
    ("ems", "n" * 128, 0, "level-too-long", "is 128 characters in one level, limit 127"),
    ("ems", "n" * 127 + "." + "n" * 122, 0, "too-long", "is 250 characters, limit 249"),
    ("ems", ".".join("a" * 65), 0, "too-deep", "is 65 levels, limit 64"),
    ("ems", EMS_64, 0, "too-long", "limit 196"),
    ("rv", "_RV.INFO", 0, "reserved", "belong to the system"),
    ("rv", "_RVCM.x", 0, "reserved", "belong to the system"),
    ("rv", "_other", 0, "forbidden-first", "'_' cannot be the first character"),
    ("rv", "n" * 253, 0, "level-too-long", "limit 252"),
    ("rv", "n" * 250 + "." + "nnnnn", 0, "too-long", "is 256 characters, limit 255"),
    ("mqtt", "", 0, "empty-name", "it is empty"),
    ("mqtt", "a/b+", 3, "wildcard-in-name", "'+' is a wildcard"),
    ("mqtt", "a\0", 1, "nul", "NUL cannot stand in it"),
    ("mqtt", "a\ud800", 1, "surrogate", "no UTF-8"),
    ("mqtt", "é" * 32_768, 0, "too-long", "is 65536 bytes, limit 65535"),
    ("ibm", "level0/level1/+/level4/#", 14, "wildcard-in-name", "fills a level"),
    ("smf", "é" * 126, 0, "too-long", "is 252 bytes, limit 250"),
    ("smf", "/" * 128, 0, "too-deep", "is 129 levels, limit 128"),
    ("smf", "a\0", 1, "nul", "NUL"),
    ("yami4", "a\0b", 1, "nul", "NUL"),
    ("smartsockets", "foo", 0, "no-leading-separator", "does not begin with '/'"),
    ("smartsockets", "/", 1, "empty-element", "token 1 is empty"),
    ("smartsockets", "/a/...", 3, "wildcard-in-name", "'...' is a wildcard"),
    ("smartsockets", "/b*", 2, "wildcard-in-name", "'*' is a wildcard"),
    ("nats", "q.*.r", 2, "wildcard-in-name", "fills a token"),  # the server delivers it literally
    ("nats", "q.>", 2, "wildcard-in-name", "fills a token"),
    ("nats", "q..r", 2, "empty-element", "token 2 is empty"),  # lost without an error
    ("nats", "a b", 1, "white-space", "ends a subject"),
    ("nats", "a\x1f", 1, "control-character", "control character"),
    ("nats", "a\0", 1, "nul", "NUL"),
    ("nats", "$JS.API.INFO", 0, "reserved", "belong to the system"),
    ("nats", "_INBOX.a", 0, "reserved", "belong to the system"),
    ("nats", "n" * 4_001, 0, "too-long", "is 4001 bytes, limit 4000"),
    ("rabbitmq", "a.*.b", 2, "wildcard-in-name", "fills a word"),  # delivered literally
    ("rabbitmq", "#", 0, "wildcard-in-name", "fills a word"),
    ("rabbitmq", "", 0, "empty-name", "is empty"),  # the key of a fanout: it has no word
    ("rabbitmq", "é" * 128, 0, "too-long", "is 256 bytes, limit 255"),
    ("kafka", "", 0, "empty-name", "it is empty"),
    ("kafka", ":k", 0, "empty-name", "it is empty"),
    ("kafka", ".", 0, "forbidden-topic", "no topic is '.'"),
    ("kafka", "..:k", 0, "forbidden-topic", "no topic is '..'"),
    ("kafka", "a b", 1, "forbidden-character", "' ' is none of the characters of a name"),
    ("kafka", "a/b", 1, "forbidden-character", "'/' is none of the characters of a name"),
    ("kafka", "é:k", 0, "forbidden-character", "'é' is none of the characters of a name"),
    ("kafka", "a:b\ud800", 3, "surrogate", "no UTF-8"),
    ("kafka", "n" * 250, 0, "too-long", "is 250 characters, limit 249"),
    ("kafka", "a:b.:", 0, "boundary", "between topic and key, and nowhere else"),
    ("kafka", "a._x3A-.b", 0, "boundary", "between topic and key, and nowhere else"),
]

BAD_PATTERNS = [
    ("ems", "a*", 0, "wildcard-in-element"),
    ("ems", "a.>.b", 2, "wildcard-not-last"),
    ("ems", "a..b", 2, "empty-element"),
    ("rv", "a.b*", 2, "wildcard-in-element"),
    ("rv", ">.a", 0, "wildcard-not-last"),
    ("mqtt", "a/#/b", 2, "wildcard-not-last"),
    ("mqtt", "sport/tennis#", 6, "wildcard-in-element"),
    ("mqtt", "sport+", 0, "wildcard-in-element"),
    ("mqtt", "$share/g", 0, "shared-subscription"),
    ("mqtt", "$share//a", 0, "shared-subscription"),
    ("smf", "animals/*bro", 8, "wildcard-in-element"),
    ("smf", "animals/br*wn", 8, "wildcard-in-element"),
    ("smf", "a//b", 2, "empty-element"),
    ("smartsockets", "/.../a", 1, "wildcard-not-last"),
    ("smartsockets", "a", 0, "no-leading-separator"),
    ("nats", "a.>.b", 2, "wildcard-not-last"),
    ("nats", "a..b", 2, "empty-element"),
    ("nats", "a b", 1, "white-space"),
    ("yami4", "a\0", 1, "nul"),
    ("kafka", "a.>.b", 2, "wildcard-not-last"),
    ("kafka", "a:b.>.c", 4, "wildcard-not-last"),
    ("kafka", "a.b*:c*", 2, "wildcard-in-element"),
    ("kafka", "a.#", 2, "forbidden-character"),
    ("kafka", "a:>.:", 2, "wildcard-not-last"),
    ("kafka", "a:b.:", 0, "boundary"),
]

WARNED = [
    ("ems", "a b", "' ' is legal and advised against"),
    ("rv", "n" * 200, "advises 195 at most"),
    ("rv", "n" * 130, "advises 127 at most"),
    ("rv", "_LOCAL.x", "a meaning of their own"),
    ("smf", "a/#P2P", "the inbox of one client"),
    ("yami4", "n" * 201, "advises 200 at most"),
]


@pytest.mark.parametrize(("system", "name"), LEGAL)
def test_a_legal_name_is_accepted(system: str, name: str) -> None:
    check_name(name, DIALECTS[system])


@pytest.mark.parametrize(("system", "name", "offset", "rule", "reason"), ILLEGAL)
def test_an_illegal_name_is_refused_with_its_rule(
    system: str, name: str, offset: int, rule: str, reason: str
) -> None:
    with pytest.raises(SubjectError, match=r"\A" + system) as caught:
        check_name(name, DIALECTS[system])

    assert (caught.value.offset, caught.value.rule) == (offset, rule)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("system", "pattern", "offset", "rule"), BAD_PATTERNS)
def test_an_illegal_subscription_is_refused_with_its_rule(
    system: str, pattern: str, offset: int, rule: str
) -> None:
    with pytest.raises(SubjectError) as caught:
        read_pattern(pattern, DIALECTS[system])

    assert (caught.value.offset, caught.value.rule) == (offset, rule)


@pytest.mark.parametrize(("system", "name", "advice"), WARNED)
def test_a_legal_name_that_is_likely_to_cause_trouble_gets_a_warning(
    system: str, name: str, advice: str
) -> None:
    assert any(advice in warning for warning in warnings_of(name, DIALECTS[system]))


def test_a_plain_name_gets_no_warning() -> None:
    assert warnings_of("orders.emea", DIALECTS["ems"]) == ()


@pytest.mark.parametrize("name", [name for system, name in LEGAL if system == "mqtt"])
def test_a_subject_is_rendered_as_it_was_parsed(name: str) -> None:
    assert render_subject(parse_subject(name, DIALECTS["mqtt"]), DIALECTS["mqtt"]) == name


@pytest.mark.parametrize(
    ("system", "pattern"),
    [
        ("ems", "a.*.>"),
        ("mqtt", "+/a%2Fb/#"),
        ("ibm", "#/Results/+"),
        ("smf", "a/red*/>"),
        ("yami4", "a.*.b"),
        ("smartsockets", "/foo/b*z/..."),
    ],
)
def test_a_pattern_is_rendered_as_it_was_parsed(system: str, pattern: str) -> None:
    (parsed,) = parse_pattern(pattern, DIALECTS[system])

    assert render_pattern(parsed, DIALECTS[system]) == pattern


def test_a_pattern_that_no_subscription_selects_exactly_is_refused() -> None:
    with pytest.raises(TranslationError, match="no subscription selects exactly this"):
        render_pattern(Pattern((Literal("a"), AnyMany(1))), DIALECTS["mqtt"])
    with pytest.raises(TranslationError, match="a wildcard elsewhere than at its end"):
        render_pattern(Pattern((Glob(("a", "b")),)), DIALECTS["smf"])
    with pytest.raises(TranslationError, match="is the rest wildcard and not last"):
        render_pattern(Pattern((AnyMany(0), AnyOne())), DIALECTS["mqtt"])


@pytest.mark.parametrize(
    ("system", "levels", "rule"),
    [
        ("ems", ("%24sys", "x"), "reserved"),
        ("ems", ("%24TMP$", "x"), "reserved"),
        ("rv", ("%5FRV", "x"), "reserved"),
        ("smf", ("a", "%23P2P"), "inbox"),
        ("mqtt", ("",), "empty-name"),
        ("ems", (), "empty-name"),
        ("ibm", ("\ud800",), "surrogate"),
    ],
)
def test_a_subject_to_which_no_client_may_send_is_refused(
    system: str, levels: tuple[str, ...], rule: str
) -> None:
    with pytest.raises(TranslationError) as caught:
        render_subject(Subject(levels), DIALECTS[system])

    assert caught.value.rule == rule


def test_a_reply_may_be_sent_to_a_name_of_the_system() -> None:
    ems, smf = DIALECTS["ems"], DIALECTS["smf"]

    assert render_subject(parse_subject("$TMP$.a", ems), ems, replies=True) == "$TMP$.a"
    assert render_subject(parse_subject("#P2P/a", smf), smf, replies=True) == "#P2P/a"


def test_a_made_name_leaves_the_reserve_of_ems_free() -> None:
    subject = Subject(tuple("abcd" for _ in range(45)))

    with pytest.raises(LimitError, match="is 224 characters, limit 211"):
        render_subject(subject, DIALECTS["ems"])


def test_the_error_for_an_unknown_system_suggests_the_nearest() -> None:
    with pytest.raises(GatewayError, match="did you mean 'smartsockets'"):
        find_dialect("smartsocket")


@pytest.mark.parametrize("system", DIALECTS)
@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "a/." * 10_000, "/" * 1_000_000, "%2525" * 200_000, "\ud800" * 100_000, "\0"],
    ids=["long", "deep", "empty-levels", "tokens", "surrogates", "nul"],
)
def test_huge_text_is_parsed_quickly(system: str, text: str) -> None:
    start = process_time()
    for read in (parse_subject, parse_pattern):
        with suppress(SubjectError):
            read(text, DIALECTS[system])
    assert process_time() - start < 10  # it takes a third of a second; an exponential search, days
