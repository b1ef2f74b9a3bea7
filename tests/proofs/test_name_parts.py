"""Proofs about names with a topic and a key."""

from __future__ import annotations

import pytest

from tests.proofs.routes import findings, route


@pytest.mark.parametrize("template", ["a/{t...}/:/{k...}", "a/{t...}/x/:/y/{k...}"])
def test_a_boundary_between_two_rests_is_certain(template: str) -> None:
    assert findings(route("kafka", "a.{t...}:{k...}", ("mqtt", template))) == []


def test_two_rests_have_no_certain_boundary() -> None:
    (found,) = findings(route("kafka", "a.{t...}:{k...}", ("mqtt", "a/{t...}/X/{k...}")))

    assert (found.rule, found.severity) == ("not-injective", "error")
    assert "{t...} and {k...} have no certain boundary between them" in found.text
    assert "write the level ':' between them" in found.hint
    assert len(found.example) == 2


def test_a_lost_key_is_reported_with_what_to_write() -> None:
    (found,) = findings(route("kafka", "a.{t}", ("mqtt", "a/{t}")))

    assert found.rule == "not-injective"
    assert "the template leaves out the key" in found.text
    assert "key: '{key...}'" in found.hint


def test_a_name_that_keeps_its_key_is_no_loss() -> None:
    assert findings(route("kafka", "a.>", ("mqtt", None))) == []
    assert findings(route("mqtt", "a/{x}/{r...}", ("kafka", "a.{x}:{r...}"))) == []
    assert findings(route("mqtt", "a/{r...}", ("kafka", "b:{r...}"))) == []


def test_two_names_of_one_topic_and_key_are_reported() -> None:
    (found,) = findings(route("mqtt", "a/{x}/{y}", ("kafka", "a:{x}{y}")))

    assert found.rule == "not-injective"


def test_the_limit_is_that_of_the_topic() -> None:
    keyed = findings(route("mqtt", "a/{r...}", ("kafka", "b:{r...}")), quiet=frozenset())
    topics = findings(route("mqtt", "a/{x}/{r...}", ("kafka", "b.{x}:{r...}")), quiet=frozenset())

    assert "past-limit" not in {each.rule for each in keyed}
    assert "past-limit" in {each.rule for each in topics}
