"""The laws of translation, for any two systems of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from gateway.dialects.base import read_pattern
from gateway.dialects.registry import DIALECTS
from gateway.errors import SubjectError, TranslationError
from gateway.model.subject_search import covers
from gateway.translate.names import Renderer, Translator
from gateway.translate.subscriptions import Covering, translate_pattern
from tests.strategies import names, pairs
from tests.systems import legal_name, legal_pattern, selects

T = TypeVar("T")
NEVER = {
    "local",
    "inbox",
    "reserved",
    "empty-name",
    "boundary",
    "forbidden-topic",
}  # names that stay at their system
TOO_LONG = {"too-long", "too-deep", "level-too-long"}
UNREACHED = {"hidden-first", "shared-subscription"}


def check_round_trip(source: str, targets: Iterable[str], data: st.DataObject) -> None:
    """There and back is the same name, or a refusal; two names never become one."""
    name, other = data.draw(names(source)), data.draw(names(source))
    for target in targets:
        made, rule = _result_or_rule(_translator(source, target).name, name)
        if made is None:
            assert rule in NEVER | TOO_LONG, target
            continue
        assert legal_name(target, made, made=True), (target, made)
        returned, rule = _result_or_rule(_translator(target, source).name, made)
        if returned is None:  # EMS accepts longer names than the gateway makes
            assert rule in TOO_LONG, (target, made)
            assert not legal_name(source, name, made=True)
        else:
            assert returned == name, (target, made)
        if other != name:
            other_made, _ = _result_or_rule(_translator(source, target).name, other)
            assert other_made != made, target


def check_covering(source: str, targets: Iterable[str], data: st.DataObject) -> None:
    """A subscription's cover is legal and minimal, and delivers exactly the selected names."""
    text, name = data.draw(pairs(source))
    wanted = selects(source, text, name)
    for target in targets:
        covering, rule = _result_or_rule(
            translate_pattern, text, DIALECTS[source], DIALECTS[target]
        )
        if covering is None:
            assert rule in NEVER | TOO_LONG | UNREACHED, target
            continue
        assert all(legal_pattern(target, each) for each in covering.patterns), covering
        _check_minimal(covering)
        made, _ = _result_or_rule(_translator(source, target).name, name)
        if made is not None:
            _check_delivery(covering, name, made, wanted=wanted)


def _result_or_rule(ask: Callable[..., T], *facts: object) -> tuple[T | None, str]:
    """Return the result, or the rule of the refusal; any other error fails the test."""
    try:
        return ask(*facts), ""
    except (SubjectError, TranslationError) as error:
        return None, error.rule


@cache
def _translator(source: str, target: str) -> Translator:
    return Translator(DIALECTS[source], Renderer(DIALECTS[target]))


def _check_delivery(covering: Covering, name: str, made: str, *, wanted: bool) -> None:
    reached = any(
        selects(covering.translator.target.name, each, made) for each in covering.patterns
    )
    delivered, rule = _result_or_rule(covering.delivers, name)
    if wanted and not reached:
        assert covering.omits, (covering, made)
        assert made.startswith("$")
        assert rule == "hidden"
        return
    assert delivered == wanted, (covering, made)
    if covering.exact:
        assert reached == wanted, (covering, made)


def _check_minimal(covering: Covering) -> None:
    dialect = covering.translator.target
    for each in covering.patterns if len(covering.patterns) > 1 else ():
        rest = [
            pattern
            for other in covering.patterns
            if other != each
            for pattern in read_pattern(other, dialect)
        ]
        assert not covers(rest, read_pattern(each, dialect)), covering
