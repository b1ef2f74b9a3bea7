"""The intervals and changes of names: what is sent, held or left out, and how many fit."""

from __future__ import annotations

import pytest

from gateway.model.dead_letter_rule import REFUSED
from gateway.model.memory_size import text_size
from gateway.model.outcome import ACCEPTED, SPOOLED, Settlement, rejected
from gateway.routing.route import Thin
from gateway.runtime.delivery import thinning_changes, thinning_intervals
from gateway.runtime.delivery.thinning import Thinning
from gateway.runtime.delivery.thinning_candidate import Candidate, Course
from gateway.runtime.delivery.thinning_intervals import INTERVAL_SIZE, HeldCopy
from tests.model.test_memory_size import taken as taken_memory

EACH = Thin(10.0)
CHANGES = Thin()
NAME, ROUTE = "a/b", "telemetry"
SEND, HOLD, FOLLOW = Course


def copy(
    number: int,
    rule: Thin | None = EACH,
    content: bytes = b"",
    name: str = NAME,
    route: str = ROUTE,
    *,
    again: bool = False,
) -> Candidate:
    return Candidate(name, route, rule, number.to_bytes(16), lambda: None, content, again)


def hold(found: Thinning, number: int) -> list[int]:
    """Hold a copy on disk; return the one that is cut, and the one that stands for it."""
    one = HeldCopy(number, number.to_bytes(16), 100, b"facts", ROUTE)
    replaced = found.intervals.hold(NAME, one)
    found.intervals.stored(NAME, one)
    return [each.number for each in replaced or ()]


def holding(*numbers: int) -> Thinning:
    """An interval of ten seconds from 0 on, with copies on disk."""
    found = Thinning(holds=True)
    assert found.course(copy(1), 0.0) is SEND
    for number in numbers or (2,):
        assert found.course(copy(number), 1.0) is HOLD
        hold(found, number)
    return found


def taken(found: Thinning, now: float, *, both: bool = False) -> list[int]:
    found.intervals.end_due(now)
    return [each.number for _, each in found.take_ready(9, 1 << 20, now, both=both)]


def test_an_interval_without_a_second_copy_is_forgotten() -> None:
    found = Thinning(holds=True)

    assert found.course(copy(1), 0.0) is SEND
    assert found.course(copy(2), 10.0) is SEND
    assert found.course(copy(3), 10.1) is HOLD
    found.intervals.passed(NAME)
    found.intervals.end_due(20.0)
    assert (found.intervals.by_name, found.intervals.size) == ({}, 0)


def test_the_newest_copy_is_taken_at_the_end_and_the_one_before_is_its_spare() -> None:
    found = holding(2)

    assert found.course(copy(3), 2.0) is HOLD
    newest = HeldCopy(3, b"3", 100, b"facts", ROUTE)
    assert found.intervals.hold(NAME, newest) is None
    assert taken(found, 10.0) == []  # it is not durable yet
    found.intervals.stored(NAME, newest)
    assert taken(found, 10.1) == [3]
    spare = found.intervals.decided(NAME, 3, refused=False)
    assert spare is not None
    assert spare.number == 2
    found.intervals.deleted(NAME, 3)
    assert found.intervals.size == INTERVAL_SIZE + text_size(NAME)


def test_of_three_copies_the_oldest_is_cut_for_the_next() -> None:
    """The next one is sent if the newest is refused; then it was right to name it."""
    found = holding(2, 3)
    assert found.course(copy(4), 2.0) is HOLD

    assert hold(found, 4) == [2, 3]


def test_a_spare_goes_at_once_where_the_newer_copy_is_refused() -> None:
    found = holding(2, 3)
    assert taken(found, 10.0) == [3]

    assert found.intervals.decided(NAME, 3, refused=True) is None
    assert found.course(copy(4), 11.0) is HOLD
    hold(found, 4)
    assert taken(found, 11.0) == []  # the row of the refused copy is there
    found.intervals.deleted(NAME, 3)
    assert taken(found, 11.0) == [2]
    assert found.intervals.decided(NAME, 2, refused=False) is None
    found.intervals.deleted(NAME, 2)
    assert taken(found, 19.9) == []
    assert taken(found, 20.0) == [4]


def test_where_both_are_refused_the_next_copy_begins_the_interval() -> None:
    found = holding(2, 3)
    for number in (3, 2):
        assert taken(found, 10.0) == [number]
        found.intervals.decided(NAME, number, refused=True)
        found.intervals.deleted(NAME, number)

    assert found.course(copy(4), 11.0) is SEND


def test_both_are_taken_for_a_target_that_is_away() -> None:
    found = holding(2, 3)

    assert taken(found, 10.0, both=True) == [2, 3]
    found.intervals.deleted(NAME, 2)
    assert found.course(copy(4), 25.0) is HOLD
    assert found.intervals.decided(NAME, 3, refused=False) is None
    found.intervals.deleted(NAME, 3)
    found.intervals.passed(NAME)
    found.intervals.end_due(25.0)
    assert (found.intervals.by_name, found.intervals.size) == ({}, 0)


def test_a_new_interval_begins_with_the_copy_that_was_held() -> None:
    found = holding()
    assert taken(found, 10.0) == [2]
    found.intervals.deleted(NAME, 2)

    assert found.course(copy(3), 19.9) is HOLD
    found.intervals.passed(NAME)
    found.intervals.end_due(20.0)
    assert not found.intervals.by_name


def test_nothing_passes_a_held_copy_that_is_on_its_way() -> None:
    found = holding()
    assert taken(found, 10.0) == [2]

    assert found.course(copy(3), 25.0) is HOLD
    hold(found, 3)
    assert taken(found, 26.0) == []
    found.intervals.deleted(NAME, 2)
    assert taken(found, 26.0) == [3]


def test_copies_of_two_routes_share_the_interval_of_their_name() -> None:
    found = holding()

    assert found.course(copy(3, Thin(60.0), route="other"), 2.0) is HOLD
    hold(found, 3)
    assert taken(found, 10.0) == [3]
    assert found.intervals.next_end() == 70.0


@pytest.mark.parametrize("rule", [None, CHANGES])
def test_a_copy_that_no_interval_holds_goes_behind_the_older_ones(rule: Thin | None) -> None:
    found = holding(2, 3)

    assert found.course(copy(4, rule, route="other"), 2.0) is FOLLOW
    assert found.course(copy(5, rule, route="other"), 2.0) is FOLLOW
    assert found.intervals.hasten(NAME) == 3
    assert taken(found, 2.0) == [3]
    assert found.intervals.has_older(NAME, 3)
    found.intervals.decided(NAME, 3, refused=False)
    found.intervals.deleted(NAME, 3)
    assert not found.intervals.has_older(NAME, 3)
    found.intervals.passed(NAME)
    found.intervals.passed(NAME)
    assert found.course(copy(6, rule, route="other"), 3.0) is SEND


def test_an_interval_waits_for_the_copy_that_is_about_to_be_held() -> None:
    """Its owner decides about a batch, and then writes: the interval may end in between."""
    found = Thinning(holds=True)
    assert found.course(copy(1), 0.0) is SEND
    assert found.course(copy(2), 9.9) is HOLD

    assert found.course(copy(3), 10.1) is HOLD


def test_a_dead_letter_begins_no_interval() -> None:
    found = Thinning(holds=True)
    one = copy(1)
    assert found.course(one, 0.0) is SEND
    found.answered(one, rejected(REFUSED, "no"), (1, 0))

    assert found.course(copy(2), 1.0) is SEND
    assert found.course(copy(3), 1.0) is HOLD


def test_without_a_spool_the_first_stands_for_the_others() -> None:
    found = Thinning(holds=False)
    assert found.course(copy(1), 0.0) is SEND

    assert found.course(copy(2), 1.0) == copy(1).id
    assert found.course(copy(3), 10.0) is SEND


def test_a_rule_that_is_gone_ends_its_intervals_and_lets_nothing_pass() -> None:
    found = holding()
    found.keep((), 2.0)

    assert found.course(copy(3, None), 2.0) is FOLLOW
    assert taken(found, 2.0) == [2]
    found.intervals.deleted(NAME, 2)
    found.intervals.passed(NAME)
    found.intervals.end_due(2.0)
    assert found.course(copy(4, None), 2.0) is SEND
    assert (found.intervals.by_name, found.intervals.size) == ({}, 0)


def limit_sizes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for each in (thinning_changes, thinning_intervals):
        monkeypatch.setattr(each, "MAX_SIZE", size)


A, B = b"a", b"b"


def changes(*steps: tuple[bytes, Settlement | None]) -> list[object]:
    """The courses of copies with these contents, each answered before the next one if at all."""
    found = Thinning(holds=True)
    courses: list[object] = []
    for number, (content, answer) in enumerate(steps, start=1):
        one = copy(number, CHANGES, content)
        courses.append(found.course(one, 0.0))
        if answer is not None and courses[-1] is SEND:
            found.answered(one, answer, (number, 0))
    return courses


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([(A, ACCEPTED), (A, ACCEPTED)], [SEND, copy(1).id], id="equal"),
        pytest.param([(A, ACCEPTED), (B, ACCEPTED), (A, ACCEPTED)], [SEND] * 3, id="changes"),
        pytest.param(
            [(A, ACCEPTED), (B, rejected(REFUSED, "no")), (A, ACCEPTED)],
            [SEND, SEND, copy(1).id],
            id="dead-letter",
        ),
        pytest.param([(A, None), (A, ACCEPTED)], [SEND, SEND], id="not-answered"),
        pytest.param(
            [(A, ACCEPTED), (B, None), (A, None)], [SEND] * 3, id="back-while-not-answered"
        ),
        pytest.param([(A, SPOOLED), (A, ACCEPTED)], [SEND, SEND], id="spooled-may-be-refused"),
    ],
)
def test_a_copy_is_left_out_that_equals_the_accepted_one(
    steps: list[tuple[bytes, Settlement | None]], expected: list[object]
) -> None:
    assert changes(*steps) == expected


def test_answers_count_in_the_order_of_their_copies() -> None:
    found = Thinning(holds=True)
    first, second = copy(1, CHANGES, A), copy(2, CHANGES, B)
    for each in (first, second):
        assert found.course(each, 0.0) is SEND
    found.answered(second, ACCEPTED, (2, 0))
    found.answered(first, ACCEPTED, (1, 0))

    assert found.course(copy(3, CHANGES, B), 0.0) == second.id
    assert found.course(copy(4, CHANGES, A), 0.0) is SEND


def test_a_target_that_began_empty_gets_the_next_message_of_each_name() -> None:
    found = Thinning(holds=True)
    first, second = copy(1, CHANGES, A), copy(2, CHANGES, B)
    assert found.course(first, 0.0) is SEND
    found.changes.forget_all()
    assert found.course(second, 0.0) is SEND
    found.answered(first, ACCEPTED, (1, 0))  # late: nothing is known of the second one

    assert found.course(copy(3, CHANGES, A), 0.0) is SEND
    found.answered(second, ACCEPTED, (2, 0))
    assert found.course(copy(4, CHANGES, B), 0.0) is SEND  # the third has no answer


@pytest.mark.parametrize("rule", [CHANGES, None, EACH], ids=["changes", "everything", "intervals"])
def test_another_route_under_the_name_makes_each_value_a_change(rule: Thin | None) -> None:
    found = Thinning(holds=True)
    for number, route, each in ((1, ROUTE, CHANGES), (2, "other", rule), (3, ROUTE, CHANGES)):
        content = b"B" if number == 2 else b"A"
        sent = copy(number, each, content, route=route)
        assert found.course(sent, 0.0) is SEND
        found.answered(sent, ACCEPTED, (number, 0))

    assert found.course(copy(4, CHANGES, b"A"), 0.0) == (3).to_bytes(16)


def test_a_known_duplicate_is_no_change() -> None:
    found = Thinning(holds=True)
    for number, content in enumerate((A, B), start=1):
        one = copy(number, CHANGES, content)
        assert found.course(one, 0.0) is SEND
        found.answered(one, ACCEPTED, (number, 0))

    assert found.course(copy(3, CHANGES, A, again=True), 0.0) == copy(2).id


@pytest.mark.parametrize("rule", [EACH, CHANGES])
def test_a_name_without_room_is_sent(rule: Thin, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_sizes(monkeypatch, 3_000)
    found = Thinning(holds=True)
    courses: list[object] = []
    for number in range(20):
        for again in range(2):
            one = copy(2 * number + again, rule, A, f"a/{number}")
            courses.append(found.course(one, 0.0))
            if courses[-1] is SEND:
                found.answered(one, ACCEPTED, (number, again))

    assert courses[0] is SEND
    assert courses[1] is not SEND
    assert courses[-2:] == [SEND, SEND]
    assert found.intervals.size <= 3_000


@pytest.mark.parametrize("rule", [EACH, CHANGES])
def test_the_counted_bytes_are_those_that_names_take(
    rule: Thin, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_sizes(monkeypatch, 1 << 20)
    found = Thinning(holds=True)

    def fill() -> Thinning:
        for number in range(3_000):
            one = copy(number, rule, number.to_bytes(17), f"site/{number}")
            found.course(one, 0.0)
            found.answered(one, ACCEPTED, (number, 0))
            for at in range(2 if rule is EACH else 0):
                if found.course(one, 0.0) is HOLD:
                    held = HeldCopy(number, (at + number).to_bytes(16), 100, bytes(500), ROUTE)
                    found.intervals.hold(one.name, held)
        return found

    assert taken_memory(fill) < (1 << 20) * 1.7  # a table may just have grown
