"""The notice of a dead letter leaves the payload behind where its target may pick fields."""

from __future__ import annotations

import pytest

from gateway.model.message import Message
from gateway.runtime.delivery.dead_letter import DeadLetter, picks


@pytest.mark.parametrize(("route", "withheld"), [("removed", True), ("", False)])
def test_a_letter_of_a_route_that_a_reload_removed_may_be_of_a_pick(
    route: str, *, withheld: bool
) -> None:
    letter = DeadLetter(
        0, 0, b"", route, "plant", "a", "ems", "ems", "target-removed", "", 1, Message("a", b"{}")
    )

    assert picks(None, letter) is withheld
