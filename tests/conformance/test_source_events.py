"""Events of a source, at every kind of broker: a row for each event, and one check for all.

Whatever happens: at a broker that keeps messages, none is lost; what comes twice is marked; the
order of a name is kept; a loss is reported as a gap. A new event is a function and a line; a system
that cannot have it does not have the way (`tests/endpoints/systems.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from gateway.endpoints import source_memory
from tests.endpoints.source_trial import SILENCE, SOME, Loss, Trial
from tests.endpoints.systems import NIGHTLY, PLACES, SYSTEMS, System


@dataclass(frozen=True)
class Event:
    """`happen` does it to an open source. `possible` asks whether a system can have it.

    `exact`: at a broker that keeps messages, nothing comes again, and nothing new is in doubt.
    `in_pair`: the memory is beside a lease.
    """

    name: str
    happen: Callable[[Trial], None]
    possible: Callable[[System], bool] = lambda _system: True
    exact: bool = False
    loss: Loss = Loss.NONE
    in_pair: bool = False


def outlives(system: System) -> bool:
    return system.outlives


def kill_in_silence(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.fall_quiet()
    trial.kill()
    trial.publish()
    trial.start()


def kill_under_load(trial: Trial) -> None:
    """Some messages are settled, some held, some on their way, and some not sent yet."""
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.publish(10 * SOME)
    trial.kill()
    trial.publish()
    trial.start()


def kill_behind_settlements(trial: Trial) -> None:
    """No message is held, and the last acknowledgements may not have left."""
    trial.publish(10 * SOME)
    trial.settle()
    trial.kill()
    trial.publish()
    trial.start()


def planned_stop(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.publish()
    trial.start()


def planned_stop_under_load(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.publish(10 * SOME)
    trial.stop()
    trial.publish()
    trial.start()


def handover(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.give_lease()
    trial.publish()
    trial.take_lease()
    trial.start()


def takeover(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.publish(10 * SOME)
    trial.kill()
    trial.publish()
    trial.take_lease()
    trial.start()


def takeover_from_a_frozen_holder(trial: Trial) -> None:
    """It wakes when another instance has gone on, and the third one reads what that wrote."""
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    wake = trial.freeze()
    trial.publish()
    trial.take_lease()
    trial.start()
    trial.settle()
    wake()
    trial.publish()
    trial.settle()
    trial.fall_quiet()
    trial.kill()
    trial.take_lease()
    trial.start()


EVENTS: Final = (
    Event("kill-in-silence", kill_in_silence, outlives, exact=True),
    Event("kill-under-load", kill_under_load, outlives),
    Event("kill-behind-settlements", kill_behind_settlements, outlives),
    Event("planned-stop", planned_stop, exact=True),
    Event("planned-stop-under-load", planned_stop_under_load),
    Event("handover", handover, exact=True, in_pair=True),
    Event("takeover", takeover, outlives, in_pair=True),
    Event("takeover-from-frozen", takeover_from_a_frozen_holder, outlives, in_pair=True),
)
FAULTS: Final[dict[tuple[str, str], str]] = {}  # that are known, by event and system


def rows() -> Iterator[pytest.ParameterSet]:
    for event in EVENTS:
        for system in (*SYSTEMS, *PLACES):
            marks = [pytest.mark.nightly] if system in NIGHTLY else []
            if reason := FAULTS.get((event.name, system)):
                marks.append(pytest.mark.xfail(strict=True, reason=reason))
            yield pytest.param(event, system, id=f"{event.name}-{system}", marks=marks)


@pytest.mark.parametrize(("event", "name"), [*rows()])
def test_a_source_keeps_its_promises(
    event: Event,
    name: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    system = (SYSTEMS | PLACES)[name](request)
    if not event.possible(system):
        pytest.skip("the system cannot have it")
    monkeypatch.setattr(source_memory, "WRITE_INTERVAL", SILENCE / 2)
    trial = Trial(system, tmp_path, lambda: caplog.text, event.in_pair)
    with trial.running():
        event.happen(trial)
        trial.finish(event.loss)

    trial.check(event.loss, exact=event.exact)
