from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.escape import character_search
from gateway.dialects.registry import DIALECTS
from tests.strategies import PIECES
from tests.systems import SYSTEMS

LEVELS = st.lists(
    st.lists(st.sampled_from(PIECES), max_size=5).map("".join), min_size=1, max_size=3
)


@pytest.mark.parametrize("system", SYSTEMS)
@given(LEVELS)
def test_every_subject_has_a_spelling_and_it_reads_back(system: str, levels: list[str]) -> None:
    dialect = DIALECTS[system]
    spelled = dialect.codec.encode(levels)

    assert dialect.codec.decode(spelled) == levels
    for level in spelled:
        assert dialect.separator not in level
        assert not set(level) & set(dialect.forbidden)
        assert level not in dialect.reserved_levels
        assert level or dialect.empty_levels


@pytest.mark.parametrize("system", SYSTEMS)
@given(LEVELS, LEVELS)
def test_two_subjects_are_never_spelled_alike(
    system: str, levels: list[str], others: list[str]
) -> None:
    codec = DIALECTS[system].codec

    assert (codec.encode(levels) == codec.encode(others)) == (levels == others)


@pytest.mark.parametrize(
    ("system", "level", "spelled"),
    [
        pytest.param("ems", "a.b", "a%2Eb", id="separator"),
        pytest.param("ems", "a%2Eb", "a%252Eb", id="looks-like-a-token"),
        pytest.param("ems", "a%252Eb", "a%25252Eb", id="looks-like-a-shifted-token"),
        pytest.param("ems", "100%", "100%", id="lone-percent"),
        pytest.param("ems", "%41", "%41", id="no-token-of-this-system"),
        pytest.param("ems", "%2e", "%2e", id="small-letters-are-no-token"),
        pytest.param("ems", "", "%-", id="empty"),
        pytest.param("ems", "%-", "%25-", id="looks-empty"),
        pytest.param("ems", "$SYS", "%24SYS", id="forbidden-first"),
        pytest.param("ems", "a$", "a$", id="dollar-inside"),
        pytest.param("rv", "_x", "%5Fx", id="distinguished"),
        pytest.param("rv", "_INBOX", "_INBOX", id="inbox-may-be-sent-to"),
        pytest.param("rv", "_RV", "%5FRV", id="advisory"),
        pytest.param("ibm", "+", "%2B", id="whole-level"),
        pytest.param("ibm", "+a", "+a", id="not-the-whole-level"),
        pytest.param("smf", "#P2P", "%23P2P", id="inbox"),
        pytest.param("smf", "%23P2P", "#P2P", id="the-inbox-itself"),
        pytest.param("smartsockets", "foo/bar", "foo.bar", id="slash-is-dot"),
        pytest.param("smartsockets", "foo.bar", "foo%2Ebar", id="dot-is-unspellable"),
        pytest.param("smartsockets", "///", "%2E..", id="reads-as-the-rest-wildcard"),
        pytest.param("yami4", "a,b", "a%2Cb", id="comma"),
        pytest.param("kafka", "a b", "a_x20-b", id="alphabet"),
        pytest.param("kafka", "sensor_01-x", "sensor_01-x", id="plain-in-the-alphabet"),
        pytest.param("kafka", "pos_x", "pos_x", id="half-a-token"),
        pytest.param("kafka", "_x41-", "_x41-", id="code-of-a-legal-character"),
        pytest.param("kafka", "_x020-", "_x020-", id="code-with-a-zero-more"),
        pytest.param("kafka", "_x20-", "_xx20-", id="looks-like-a-token-of-an-alphabet"),
        pytest.param("kafka", "_xx20-", "_xxx20-", id="looks-like-a-longer-token"),
        pytest.param("kafka", "\U0001f600", "_x1F600-", id="five-digits"),
        pytest.param("kafka", "_x1F600-", "_xx1F600-", id="looks-like-five-digits"),
        pytest.param("kafka", "_xD800-", "_xD800-", id="code-of-a-surrogate"),
        pytest.param("kafka", "_x2E.", "_x2E_x2E-", id="joins-no-neighbour"),
        pytest.param("kafka", ".x2E-", "_x2E-x2E-", id="joins-no-neighbour-behind-it"),
        pytest.param("kafka", "", "", id="empty-in-the-alphabet"),
        pytest.param("kafka", ":", "_x3A-", id="boundary-first"),
        pytest.param("yami4", "$x", "%24x", id="hidden-elsewhere"),
    ],
)
def test_spelling(system: str, level: str, spelled: str) -> None:
    assert DIALECTS[system].codec.encode([level]) == [spelled]


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        (["a", ":", "b", "c"], "a:b.c"),
        (["a", ":"], "a:"),
        (["a", ":", ""], "a:%-"),
        (["a", ":", "%-"], "a:%25-"),
        (["a", ":", "", ""], "a:."),
        (["a", ":", "%-", "b"], "a:%-.b"),
        (["a", ":", "b.c%2E"], "a:b%2Ec%252E"),
        (["a b", ":", "a b"], "a_x20-b:a b"),
        (["$x", ":", "$x"], "_x25-24x:$x"),
    ],
)
def test_topic_and_key_have_an_alphabet_each(levels: list[str], text: str) -> None:
    kafka = DIALECTS["kafka"]

    assert kafka.text_of(kafka.codec.encode(levels)) == text
    assert kafka.codec.decode(kafka.levels_of(text)) == levels


@pytest.mark.parametrize("length", [0, 10, 1_000, 60_000])
def test_a_character_is_found_in_a_name_of_any_length(length: int) -> None:
    find = character_search("#+")

    assert find("n" * length) is None
    for text, at in ((f"{'n' * length}+#", length), (f"#{'n' * length}+", 0)):
        found = find(text)
        assert found is not None
        assert (found.start(), found[0]) == (at, text[at])


@pytest.mark.parametrize("system", SYSTEMS)
@given(LEVELS)
def test_a_long_name_is_spelled_as_a_short_one(system: str, levels: list[str]) -> None:
    codec = DIALECTS[system].codec
    filler = "n" * 1_000
    short = codec.encode([*levels, "x"])
    long = codec.encode([*levels, "x" + filler])

    assert long == [*short[:-1], short[-1] + filler]
