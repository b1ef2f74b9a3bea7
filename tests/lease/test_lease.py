"""The decisions about one lease, event by event."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.lease.lease import NO_RECORD, Lease, Record, Take

GIVEN = Record(2, "b", given=True)  # the other instance had the next lease, and gave it away


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda lease: lease.next(60.0), id="frozen"),
        pytest.param(lambda lease: lease.renewed(5.0, 5.0, GIVEN), id="taken"),
    ],
)
def test_an_instance_that_lost_its_lease_takes_no_other_one(lose: Callable[[Lease], None]) -> None:
    """Messages in its hands are older than those that the other instance sent meanwhile."""
    lease = Lease("a", 10.0, 0.2)
    lease.looked(0.0, NO_RECORD)
    lease.taken(0.0, Record(1, "a"))
    assert lease.holds(0.0)
    lose(lease)
    lease.looked(60.0, GIVEN)

    assert not isinstance(lease.next(60.0), Take)
    assert lease.left


def test_an_instance_waits_for_no_lease_that_it_holds() -> None:
    """Its looks before the takeover changed its text in the record, as those of the others do."""
    lease = Lease("a", 10.0, 0.2)
    for at, text in enumerate(("1", "2")):
        lease.looked(float(at), Record(0, "", given=True, standby={"a": text, "b": text}))
    lease.taken(2.0, Record(1, "a", standby={"a": "2", "b": "2"}))

    assert lease.standby(2.0) == ["b"]
