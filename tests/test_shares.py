"""The share of a table that each change runs: each kind of endpoint and each fault is in it."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import left_to_the_night

KINDS = ("mqtt", "jms", "nats", "solace", "rabbitmq")
FAULTS = tuple(range(7))


class Row:
    """A row of a kind and a fault, with a text of its own."""

    def __init__(self, kind: str, fault: int) -> None:
        self.nodeid = f"table[{kind}-{fault}]"
        self.kind, self.fault = kind, fault
        self.callspec = SimpleNamespace(params={"kind": kind, "fault": fault, "text": self.nodeid})


def those_that_stay(table: list[Row], share: int) -> list[Row]:
    left = left_to_the_night(cast("list[pytest.Item]", table), share)
    return [each for each in table if each not in cast("list[Row]", left)]


@pytest.mark.parametrize("share", [9, 1_000_003])
def test_each_kind_and_each_fault_is_in_a_row_that_stays(share: int) -> None:
    table = [Row(kind, fault) for kind, fault in product(KINDS, FAULTS)]
    stay = those_that_stay(table, share)

    assert stay[0] is table[0]
    assert ({each.kind for each in stay}, {each.fault for each in stay}) == ({*KINDS}, {*FAULTS})
    assert len(stay) < len(table) // 2


def test_a_larger_share_takes_rows_that_a_smaller_one_took() -> None:
    table = [Row("mqtt", fault) for fault in range(90)]

    assert {*those_that_stay(table, 9)} < {*those_that_stay(table, 3)} < {*table}
    assert those_that_stay(table, 1) == table
