from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.imports.document import NameGenerator, comment_lines, quote_comments, to_yaml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(text=TEXTS)
def test_text_reads_back_as_it_was(text: str) -> None:
    assert yaml.safe_load(f"key: {to_yaml(text)}") == {"key": text}
    assert yaml.safe_load(f"key: {to_yaml({'a': [text, text]})}") == {"key": {"a": [text, text]}}


@given(text=TEXTS)
def test_a_comment_never_becomes_a_value(text: str) -> None:
    lines = comment_lines(text, 2)

    assert all(line.startswith("  # ") for line in lines)
    assert yaml.safe_load("\n".join([*lines, "key: 1"])) == {"key": 1}


@pytest.mark.parametrize("word", ["yes", "Off", "null", "", "1", "a b", "~", "-"])
def test_words_that_yaml_reads_as_another_type_are_quoted(word: str) -> None:
    assert yaml.safe_load(to_yaml(word)) == word


PROSE = [
    pytest.param(("one", "====", "two"), (), ('"one"', '"two"'), id="rulers"),
    pytest.param(("remote_password x", "keep"), (), ('"keep"',), id="speaks-of-a-password"),
    pytest.param(("was hunter2 once", "keep"), ("hunter2",), ('"keep"',), id="holds-a-secret"),
    pytest.param(("keep",), ("",), ('"keep"',), id="empty-secret"),
]


@pytest.mark.parametrize(("comments", "secrets", "expected"), PROSE)
def test_comments_cross_without_secrets(
    comments: tuple[str, ...], secrets: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert quote_comments(comments, secrets) == expected


def test_names_are_legal_and_unique() -> None:
    names = NameGenerator()

    assert [names.make(*parts) for parts in (("a b", "x/+"), ("a b", "x/+"), (">",), ("é",))] == [
        "a-b-x-each", "a-b-x-each-2", "all", "route",
    ]  # fmt: skip
    long = [names.make("x" * 70) for _ in range(2)]
    assert [len(name) for name in long] == [64, 64]
    assert len(set(long)) == 2


def test_no_name_is_that_of_a_reverse_route() -> None:
    assert NameGenerator().make("c", "both", "a.back") == "c-both-a-back"
