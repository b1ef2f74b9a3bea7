"""The table of the rules of dead letters."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path

import pytest

from gateway.model.dead_letter_rule import (
    BLAMING,
    JOINED_SYSTEMS,
    NO_RULE,
    RULES,
    TARGET_REMOVED,
    TOO_LONG,
    Cause,
    DeadLetterRule,
    cause_of,
)

GATEWAY = Path(__file__).parents[2] / "gateway"
LABEL = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

# A user ends the cause of these rules, and sends the message again.
SURROUNDINGS = [
    "target-removed", "unstorable", "spool-full", "spool-age", "spool-damaged", "internal",
    "expired", "poisoned", "broker-exception", "no-stream", "unroutable", "destination", "queue",
    "publish-acl", "no-subscription", "not-authorised", "not-authorized", "unknown-digest",
    "loop", "imported-loop", "hops", "no-route", "no-endpoint", "temporary-unknown", "partition",
]  # fmt: skip


@pytest.mark.parametrize("label", SURROUNDINGS)
def test_what_is_around_a_message_is_not_blamed_on_it(label: str) -> None:
    assert cause_of(label) is Cause.SURROUNDINGS
    assert RULES[label].remedy


def test_every_other_rule_blames_the_message() -> None:
    others = RULES.keys() - {*SURROUNDINGS}
    assert {cause_of(label) for label in others} == {Cause.MESSAGE}


@pytest.mark.parametrize("rule", RULES.values(), ids=str)
def test_a_rule_is_its_label(rule: DeadLetterRule) -> None:
    assert LABEL.fullmatch(rule)
    assert f"{rule}" == str(rule) == json.loads(json.dumps(rule))
    for made in (copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):  # noqa: S301  # our own
        assert (made, made.cause, made.remedy) == (rule, rule.cause, rule.remedy)


@pytest.mark.parametrize("system", JOINED_SYSTEMS)
def test_a_rule_of_a_joined_system_has_the_cause_of_the_rule(system: str) -> None:
    joined = TOO_LONG.joined(system)
    assert joined == f"{system}-too-long"
    assert joined in BLAMING
    assert cause_of(f"{system}-target-removed") is Cause.SURROUNDINGS


def test_a_rule_from_outside_says_that_the_message_is_sent_again() -> None:
    assert cause_of("rule-of-a-plug-in") is cause_of("") is Cause.SURROUNDINGS


def test_a_rule_without_a_remedy_has_the_advice_of_its_cause() -> None:
    assert TOO_LONG.advice == "correct the mapping or the sender"
    assert TARGET_REMOVED.advice == "configure the target again"


def test_no_rule_is_false_and_not_in_the_table() -> None:
    assert not NO_RULE
    assert NO_RULE not in RULES


def test_the_rules_that_the_java_helper_gives_are_in_the_table() -> None:
    sender = GATEWAY / "endpoints/jms/java/gateway/jms/Sender.java"
    text = sender.read_text(encoding="utf-8")
    given = {*re.findall(r'new Refused\("([^"]+)"', text), *re.findall(r'= "([a-z-]+)\\n"', text)}
    assert len(given) > 5
    assert given - {"no-room"} <= RULES.keys()


def test_a_rule_is_made_in_the_table_alone() -> None:
    """mypy proves that a dead letter has a rule; this one that the rule is a row of the table."""
    table = GATEWAY / "model/dead_letter_rule.py"
    others = (path for path in GATEWAY.rglob("*.py") if path != table)
    made = [path for path in others if "DeadLetterRule(" in path.read_text(encoding="utf-8")]
    assert made == []
