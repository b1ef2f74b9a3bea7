from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml

from gateway.model import dead_letter_rule as rules
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Settlement, rejected
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.poisoned_names import PoisonedNames
from tests.runtime.outbound_batches import batch_of

POISONED = rejected(rules.POISONED, "the connection broke each time it was sent")
OTHER = rejected(rules.NOT_AUTHORIZED, "the broker refused it")


def batch(
    poisoned: Sequence[str], taken: Sequence[str], refused: Sequence[str] = ()
) -> OutboundBatch:
    ends: list[tuple[str, Settlement]] = [
        *((name, POISONED) for name in poisoned),
        *((name, ACCEPTED) for name in taken),
        *((name, OTHER) for name in refused),
    ]
    messages = [Message(name, b"x") for name, _ in ends]
    found = batch_of(messages)
    found.settle(range(len(ends)), [end for _, end in ends])
    return found


DEEP = "a/b/c/d/e/f/g/h/i"
CASES = [
    pytest.param(
        ["a/b.1", "c/d.2", "a.b"], ["a/b1", "c/d"], {"forbidden_characters": "."}, id="character"
    ),
    pytest.param(
        ["a .b", "c/d. e", ". "], ["a/b", "c"], {"forbidden_characters": " ."}, id="characters"
    ),
    pytest.param(['a"\t', 'b"\t', '"\t'], ["x"], {"forbidden_characters": '\t"'}, id="quoted"),
    pytest.param([DEEP, DEEP + "/j", "x/" + DEEP], ["a/b/c/d/e/f/g/h"], {"levels": 8}, id="levels"),
    pytest.param(
        ["a/" * 205 + "a", "b/" * 209 + "b", "c/" * 207 + "c"],
        ["a/b"],
        {"levels": 201},
        id="levels-of-mosquitto",
    ),
    pytest.param(["x" * 300, "y" * 257, "x/" + "é" * 150], ["x" * 256], {"bytes": 256}, id="bytes"),
    pytest.param(
        ["admin/a", "admin/b/c", "admin"],
        ["user/a"],
        {"forbidden_first_levels": ["admin"]},
        id="first",
    ),
    pytest.param(["a/b", "c/d/e", "f"], ["g", "a/c"], {}, id="nothing-in-common"),
    pytest.param(["a.b", "c.d", "e.f"], ["g.h"], {}, id="taken-too"),
    pytest.param(["a.b", "c.d"], ["g"], {}, id="too-few"),
    pytest.param(["a.b", "c.d", "e.f"], [], {}, id="nothing-to-compare"),
]


@pytest.mark.parametrize(("poisoned", "taken", "limits"), CASES)
def test_the_limit_that_tells_poisoned_names_from_the_others_is_proposed(
    poisoned: list[str], taken: list[str], limits: dict[str, object]
) -> None:
    names = PoisonedNames("/")

    proposal = names.finished(batch(poisoned, taken, refused=["z.z"]))

    assert yaml.safe_load(f"{{{proposal}}}") == limits


def test_a_proposal_is_made_once_and_again_when_it_changes() -> None:
    names = PoisonedNames(".")

    assert names.finished(batch(["a b", "c d"], ["e"])) == ""
    assert names.finished(batch(["f g"], [])) == 'forbidden_characters: " "'
    assert names.finished(batch(["h i"], ["j"])) == ""
    assert names.finished(batch(["h:i"], ["j k"])) == ""  # nothing in common any more
    assert names.finished(batch([], ["l"])) == ""
