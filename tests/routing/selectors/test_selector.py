from __future__ import annotations

import contextlib
import math
import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import SubjectError
from gateway.model.message import DeliveryMode, Headers, Value
from gateway.routing.selectors.ast import (
    Arithmetic,
    Compare,
    Constant,
    IsNull,
    Like,
    Logic,
    Node,
    Not,
    OneOf,
    SelectorField,
    Signed,
)
from gateway.routing.selectors.compile import like_pattern
from gateway.routing.selectors.selector import parse_selector
from tests.routing.selectors.selector_model import bracketed, slow, slow_like, written

MESSAGE = Headers(
    mode=DeliveryMode.AT_LEAST_ONCE,
    time=1_700_000_000_123_456,
    correlation_id=b"c-1",
    source_id="ID:7",
    properties={
        "age": 7, "px": 1.5, "region": "emea", "big": 2**63 - 1, "on": True, "off": False,
        "raw": b"x", "JMSType": "quote", "_x$": "a_b%", "one": 1, "zero": 0, "many": [1],
        "nan": math.nan, "huge": 10**400, "größe": 5,
    },
)  # fmt: skip

# text, True, False or None for unknown; rules of the EMS User's Guide, "Message Selectors"
ANSWERS: list[tuple[str, bool | None]] = [
    ("age = 7", True), ("age <> 7", False), ("age > 6.5", True), ("age >= 7", True),
    ("age < 7", False), ("age <= 7.0", True), ("7 = age", True), ("age = +7", True),
    ("px = 1.5", True), ("px = 15E-1", True), ("px = 1.5d", True), ("px = .15e1F", True),
    ("age = 7L", True), ("age = 7.", True), ("age=7AND px=1.5", True),
    ("region = 'emea'", True), ("region <> 'emea'", False), ("region = 'EMEA'", False),
    ("on", True), ("off", False), ("NOT on", False), ("on = TRUE", True), ("off <> true", True),
    ("TRUE", True), ("false", False), ("on = off", False),
    # a property that is not there is NULL, and its comparison unknown
    ("gone = 7", None), ("gone <> 7", None), ("NOT gone = 7", None), ("gone", None),
    ("gone = gone", None), ("Age = 7", None), ("gone > 1", None),
    ("gone IS NULL", True), ("gone is not null", False), ("age IS NULL", False),
    ("region IS NOT NULL", True),
    # incomparable types: false, whatever the operator
    ("region = 7", False), ("region <> 7", False), ("NOT region = 7", True), ("on = 1", False),
    ("age = 'a'", False), ("region > region", False), ("on > off", False), ("raw = 'x'", False),
    ("raw = raw", False), ("many = 1", False), ("on <> one", False), ("region", False),
    ("NOT region", True), ("raw IS NOT NULL", True),
    # three-valued logic
    ("gone = 1 OR age = 7", True), ("gone = 1 AND age = 7", None), ("gone = 1 AND age = 8", False),
    ("gone = 1 OR age = 8", None), ("age = 8 OR gone = 1 OR on", True),
    # precedence: NOT, AND, OR
    ("on OR on AND off", True), ("(on OR on) AND off", False), ("NOT off AND on", True),
    ("NOT (off AND on)", True), ("NOT on OR on", True),
    # arithmetic
    ("age + 1 = 8", True), ("age - 1 - 1 = 5", True), ("2 + 3 * age = 23", True),
    ("(2 + 3) * age = 35", True), ("age / 2 = 3", True), ("-age / 2 = -3", True),
    ("age / 2.0 = 3.5", True), ("- -age = 7", True), ("age -1 = 6", True), ("-age = -7", True),
    ("big + 1 < 0", True), ("big = 9223372036854775807", True),
    ("-big - 1 = -9223372036854775808", True), ("age / zero = 1", None),
    ("age / 0.0 > 1000", True), ("-age / 0.0 < 0", True), ("0.0 / 0 = 0", False),
    ("nan = nan", False), ("nan <> nan", True), ("huge > 1.5", True), ("huge * 1.0 > 1E300", True),
    ("region + 1 = 2", None), ("on + 1 = 2", None), ("gone * 2 = 4", None), ("-region = 1", None),
    # BETWEEN includes both ends, and is two comparisons
    ("age BETWEEN 5 AND 9", True), ("age BETWEEN 7 AND 7", True), ("age BETWEEN 8 AND 9", False),
    ("age NOT BETWEEN 5 AND 9", False), ("age NOT BETWEEN 8 AND 9 AND on", True),
    ("gone BETWEEN 1 AND 2", None), ("gone NOT BETWEEN 1 AND 2", None),
    ("age BETWEEN 8 AND gone", False), ("region BETWEEN 1 AND 2", False),
    ("region NOT BETWEEN 1 AND 2", False), ("age + 1 BETWEEN 4 * 2 AND 3 * 3", True),
    # IN
    ("region IN ('apac', 'emea')", True), ("region NOT IN ('apac', 'emea')", False),
    ("region in('apac')", False), ("gone IN ('a')", None), ("gone NOT IN ('a')", None),
    ("age IN ('7')", False),
    # LIKE
    ("region LIKE 'em%'", True), ("region LIKE '%'", True), ("region LIKE 'e_e_'", True),
    ("region LIKE 'e_'", False), ("region NOT LIKE 'em%'", False), ("gone LIKE '%'", None),
    ("gone NOT LIKE '%'", None), ("age LIKE '7'", False), ("_x$ LIKE 'a!_b!%' ESCAPE '!'", True),
    ("region LIKE 'e!_ea' ESCAPE '!'", False), ("_x$ LIKE 'a\\_b\\%' ESCAPE '\\'", True),
    ("_x$ LIKE '%%%b%%'", True), ("region LIKE 'EM%'", False), ("region LIKE ''", False),
    ("_x$ LIKE 'a''%'", False),
    # headers
    ("JMSPriority = 4", True), ("JMSDeliveryMode = 'PERSISTENT'", True),
    ("JMSTimestamp = 1700000000123", True), ("JMSCorrelationID = 'c-1'", True),
    ("JMSMessageID LIKE 'ID:%'", True), ("JMSType = 'quote'", True), ("JMSXGroupID = 'a'", None),
    ("JMS_TIBCO_SENDER IS NULL", True),
    # words are not part of names, and space is space
    ("orders = 1 or age\t=\n7", True), ("größe = 5", True), ("nota is null", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_a_selector_answers(text: str, answer: bool | None) -> None:
    selector = parse_selector(text)

    assert selector.test(MESSAGE) is answer
    assert selector.matches(MESSAGE) is (answer is True)
    assert (selector.test(MESSAGE), slow(selector.tree, MESSAGE)) == (answer, answer)


TRUTH = {"T": "TRUE", "F": "FALSE", "U": "gone"}
TABLES = [("AND", "TT=T TF=F TU=U FF=F FU=F UU=U"), ("OR", "TT=T TF=T TU=T FF=F FU=U UU=U")]


@pytest.mark.parametrize(("word", "table"), TABLES)
def test_the_truth_tables_of_sql(word: str, table: str) -> None:
    values = {"T": True, "F": False, "U": None}
    for row in table.split():
        for left, right in ((row[0], row[1]), (row[1], row[0])):
            text = f"{TRUTH[left]} {word} {TRUTH[right]}"
            assert parse_selector(text).test(MESSAGE) is values[row[3]], text


WRONG = [
    ("", 0, "syntax", "it is empty"),
    ("a = ", 4, "syntax", "it ends too early"),
    ("a == 1", 3, "syntax", "equal is written = once"),
    ("a != 1", 2, "syntax", "not equal is written <>"),
    ("a = 'x", 4, "syntax", "no closing apostrophe"),
    ('a = "x"', 4, "syntax", "a text stands between apostrophes"),
    ("a = ’x’", 4, "syntax", "the apostrophe of a text"),  # noqa: RUF001  # as it is pasted
    ("a = NULL", 4, "syntax", "ask with IS NULL"),
    ("a = 1)", 5, "syntax", "unexpected ')'"),
    ("a = b = c", 6, "syntax", "unexpected '='"),
    ("a in ()", 6, "syntax", "unexpected ')'"),
    ("a in (1)", 6, "syntax", "unexpected '1'"),
    ("a like b", 7, "syntax", "unexpected 'b'"),
    ("AND = 1", 0, "syntax", "unexpected 'AND'"),
    ("a\0", 1, "syntax", "unexpected"),
    ("'a'", 0, "type", "a condition is expected"),
    ("a and 5", 6, "type", "a condition is expected"),
    ("not -a", 4, "type", "a condition is expected"),
    ("a > 'b'", 4, "type", "a number is expected"),
    ("a between 'b' and 'c'", 10, "type", "a number is expected"),
    ("'a' + b = 1", 0, "type", "a number is expected"),
    ("(a = 1) = b", 1, "type", "a value is expected"),
    ("1 = 'a'", 0, "type", "a number and a text are never equal"),
    ("TRUE = 1", 0, "type", "never equal"),
    ("1 in ('a')", 0, "type", "the name of a header or property is expected before IN"),
    ("a like 'x' escape 'ab'", 18, "like", "an escape is one character"),
    ("a like 'x!y' escape '!'", 7, "like", "'!' escapes only"),
    ("a like 'x!' escape '!'", 7, "like", "'!' escapes only"),
    ("a = 012", 4, "number", "octal"),
    ("a = 9223372036854775808", 4, "number", "past 64 bits"),
    ("a = 9223372036854775808 + 1", 4, "number", "past 64 bits"),
    ("a = 1e400", 4, "number", "double"),
    ("JMSExpiration > 1", 0, "header", "JMS 2.0, 3.8.1.1"),
    ("JMSPriorty > 1", 0, "header", "did you mean 'JMSPriority'?"),
]


@pytest.mark.parametrize(("text", "offset", "rule", "reason"), WRONG)
def test_a_wrong_selector_has_an_offset(text: str, offset: int, rule: str, reason: str) -> None:
    with pytest.raises(SubjectError) as caught:
        parse_selector(text)

    error = caught.value
    assert (error.dialect, error.text, error.offset, error.rule) == ("selector", text, offset, rule)
    assert reason in error.reason


HOSTILE = [
    pytest.param("(" * 10_000 + "a=1" + ")" * 10_000, "too-deep", id="parentheses"),
    pytest.param("(" * 10_000, "too-deep", id="open"),
    pytest.param("not " * 16_000 + "a", "too-deep", id="not"),
    pytest.param("a = " + "-" * 60_000 + "1", "too-deep", id="minus"),
    pytest.param("a = '" + "x" * (1 << 20) + "'", "too-long", id="text"),
    pytest.param("a = " + "9" * (1 << 20), "too-long", id="number"),
    pytest.param("a = " + "9" * 60_000, "number", id="digits"),
    pytest.param("a = " + "1+" * 30_000 + "1", "too-long", id="operators"),
    pytest.param("a like '" + "%a" * 30_000 + "'", "like", id="like"),
]


@pytest.mark.parametrize(("text", "rule"), HOSTILE)
def test_a_hostile_selector_is_refused_at_once(text: str, rule: str) -> None:
    parse_selector("a = 1")  # the parser is made
    before = process_time()

    with pytest.raises(SubjectError) as caught:
        parse_selector(text)

    assert caught.value.rule == rule
    assert process_time() - before < 10  # it takes milliseconds


def test_like_never_takes_long() -> None:
    pattern = like_pattern("%a" * 50 + "%b", "")
    before = process_time()

    assert pattern.fullmatch("a" * 100_000) is None
    assert process_time() - before < 10  # as above


def test_a_selector_lists_its_headers_and_properties() -> None:
    selector = parse_selector("region IN ('a') AND JMSPriority > px * 2")

    assert selector.names == {"region", "JMSPriority", "px"}


def test_a_correlation_id_of_bytes_is_read_as_text() -> None:
    headers = Headers(correlation_id=b"\xff\x01", mode=DeliveryMode.AT_MOST_ONCE)

    assert parse_selector("JMSCorrelationID = 'ff01'").matches(headers)
    assert parse_selector("JMSDeliveryMode = 'NON_PERSISTENT'").matches(headers)
    assert parse_selector("JMSTimestamp IS NULL AND JMSMessageID IS NULL").matches(headers)


# Laws: any tree, written down and read again, is itself and answers as the model does.

VALUES: st.SearchStrategy[Value] = st.sampled_from(
    [None, True, False, 0, 1, -3, 7, 2**62, 0.5, -0.0, 1e308, math.inf, "", "a", "ab", "it's", b"a"]
)
FIELDS = st.sampled_from(["a", "b", "c", "JMSPriority", "JMSType"]).map(SelectorField)
NUMBERS = st.one_of(
    FIELDS,
    st.integers(0, 2**63 - 1).map(Constant),
    st.sampled_from([0, 1, 2, 7]).map(Constant),
    st.sampled_from([0.0, 0.5, 7.0, 1e308]).map(Constant),
)
ESCAPED = st.lists(st.sampled_from(["!%", "!_", "!!", "a", "%", "_"])).map("".join)
TEXTS = st.text(alphabet="ab%_!'", max_size=6)


def _sums(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    step = st.tuples(st.sampled_from("+-*/"), inner)
    return st.one_of(
        st.builds(Signed, st.sampled_from("+-"), inner),
        st.builds(lambda first, second: Arithmetic(first, (second,)), inner, step),
    )


NUMERIC: st.SearchStrategy[Node] = st.recursive(NUMBERS, _sums, max_leaves=5)
PLAIN: st.SearchStrategy[Node] = st.one_of(FIELDS, TEXTS.map(Constant))
LEAVES: st.SearchStrategy[Node] = st.one_of(
    FIELDS,
    st.booleans().map(Constant),
    st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMERIC, NUMERIC),
    st.builds(Compare, st.sampled_from(["=", "<>"]), FIELDS, PLAIN),
    st.builds(OneOf, FIELDS, st.frozensets(TEXTS, min_size=1, max_size=3)),
    st.builds(Like, FIELDS, TEXTS.map(lambda text: text.replace("!", ""))),
    st.builds(Like, FIELDS, ESCAPED, st.just("!")),
    st.builds(IsNull, FIELDS),
)


def _logic(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    operands = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, inner), st.builds(Logic, st.sampled_from(["AND", "OR"]), operands)
    )


CONDITIONS: st.SearchStrategy[Node] = st.recursive(LEAVES, _logic, max_leaves=8)
MESSAGES = st.builds(
    Headers,
    priority=st.one_of(st.none(), st.integers(0, 9)),
    properties=st.dictionaries(st.sampled_from(["a", "b", "c", "JMSType"]), VALUES),
)


@given(CONDITIONS, MESSAGES)
def test_a_selector_agrees_with_the_model(tree: Node, headers: Headers) -> None:
    selector = parse_selector(written(tree))

    assert selector.tree == tree
    assert selector.test(headers) is slow(tree, headers)


@given(CONDITIONS, CONDITIONS, MESSAGES)
def test_the_laws_of_three_valued_logic(left: Node, right: Node, headers: Headers) -> None:
    a, b = bracketed(left), bracketed(right)
    for one, other in [
        (f"NOT NOT {a}", a),
        (f"NOT ({a} AND {b})", f"NOT {a} OR NOT {b}"),
        (f"NOT ({a} OR {b})", f"NOT {a} AND NOT {b}"),
        (f"{a} AND {b}", f"{b} AND {a}"),
        (f"{a} OR ({a} AND {b})", a),
    ]:
        assert parse_selector(one).test(headers) is as_condition(other, headers)


def as_condition(text: str, headers: Headers) -> bool | None:
    return parse_selector(f"{text} AND TRUE").test(headers)


@given(
    st.one_of(
        st.text(max_size=40), st.text(alphabet="ab'%_()=<>!+-*/ .19eEdLnotandrlikes", max_size=40)
    )
)
def test_no_text_raises_anything_but_its_error(text: str) -> None:
    with contextlib.suppress(SubjectError):
        assert parse_selector(text).text == text


@given(st.text(alphabet="ab%_!", max_size=8), st.text(alphabet="ab%_", max_size=10))
def test_like_agrees_with_the_model(pattern: str, text: str) -> None:
    legal = "!" not in re.sub("![!%_]", "", pattern)
    escape = "!" if legal else ""

    found = like_pattern(pattern, escape).fullmatch(text) is not None

    assert found is slow_like(pattern, escape, text)
