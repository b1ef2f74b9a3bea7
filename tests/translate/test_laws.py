"""The laws of translation: every name and subscription drawn is tried against all other systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import read_pattern
from gateway.dialects.registry import DIALECTS
from gateway.errors import SubjectError, TranslationError
from gateway.model.language import covers
from gateway.translate.names import Translator
from gateway.translate.subscriptions import Covering, translate_pattern
from tests.dialects.rules import SYSTEMS, legal_name, legal_pattern, selects
from tests.strategies import names, pairs

T = TypeVar("T")
NEVER = {"local", "inbox", "reserved", "empty-name"}  # what a system keeps for itself
TOO_LONG = {"too-long", "too-deep", "level-too-long"}
UNREACHED = {"hidden-first", "shared-subscription"}


def _or_rule(ask: Callable[..., T], *facts: object) -> tuple[T | None, str]:
    """The answer, or the rule of the refusal; any other error is the test's end."""
    try:
        return ask(*facts), ""
    except (SubjectError, TranslationError) as error:
        return None, error.rule


@cache
def _translator(source: str, target: str) -> Translator:
    return Translator(DIALECTS[source], DIALECTS[target])


def _others(system: str) -> list[str]:
    return [other for other in SYSTEMS if other != system]


@pytest.mark.parametrize("source", SYSTEMS)
@given(data=st.data())
def test_there_and_back_is_the_same_name(source: str, data: st.DataObject) -> None:
    name, other = data.draw(names(source)), data.draw(names(source))
    for target in _others(source):
        made, rule = _or_rule(_translator(source, target).name, name)
        if made is None:
            assert rule in NEVER | TOO_LONG, target
            continue
        assert legal_name(target, made, made=True), (target, made)
        returned, rule = _or_rule(_translator(target, source).name, made)
        if returned is None:  # EMS takes longer names than we make
            assert rule in TOO_LONG, (target, made)
            assert not legal_name(source, name, made=True)
        else:
            assert returned == name, (target, made)
        if other != name:
            twin, _ = _or_rule(_translator(source, target).name, other)
            assert twin != made, target


@pytest.mark.parametrize("source", SYSTEMS)
@given(data=st.data())
def test_a_subscription_is_covered_by_the_fewest(source: str, data: st.DataObject) -> None:
    text, name = data.draw(pairs(source))
    wanted = selects(source, text, name)
    for target in _others(source):
        covering, rule = _or_rule(translate_pattern, text, DIALECTS[source], DIALECTS[target])
        if covering is None:
            assert rule in NEVER | TOO_LONG | UNREACHED, target
            continue
        assert all(legal_pattern(target, each) for each in covering.patterns), covering
        _check_minimal(covering)
        made, _ = _or_rule(_translator(source, target).name, name)
        if made is not None:
            _check_delivery(covering, name, made, wanted=wanted)


def _check_delivery(covering: Covering, name: str, made: str, *, wanted: bool) -> None:
    reached = any(selects(covering.target.name, each, made) for each in covering.patterns)
    delivered, rule = _or_rule(covering.delivers, name)
    if wanted and not reached:
        assert covering.omits, (covering, made)
        assert made.startswith("$")
        assert rule == "hidden"
        return
    assert delivered == wanted, (covering, made)
    if covering.exact:
        assert reached == wanted, (covering, made)


def _check_minimal(covering: Covering) -> None:
    dialect = covering.target
    for each in covering.patterns if len(covering.patterns) > 1 else ():
        rest = [
            pattern
            for other in covering.patterns
            if other != each
            for pattern in read_pattern(other, dialect)
        ]
        assert not covers(rest, read_pattern(each, dialect)), covering
