"""The phases of a lane, and the events that lead from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class Phase(Enum):
    """The phases of a lane."""

    AWAY = auto()  # until the pause before the next attempt is over
    OPENING = auto()
    HELD = auto()  # connected; our sources at the broker are not
    DRAINING = auto()  # connected; the backlog is sent
    DIRECT = auto()  # connected, and nothing waits
    BROKEN = auto()  # until no send is in progress
    STOPPED = auto()
    REMOVED = auto()  # by a reload


class Event(Enum):
    """The events that change the phase of a lane."""

    ATTEMPT = auto()  # the pause is over
    OPENED = auto()
    FAILED = auto()
    READY = auto()  # our sources at the broker are connected, or late
    EMPTY = auto()  # the backlog is
    PACED = auto()  # a batch would exceed the rate
    LOST = auto()
    RECOVERED = auto()  # no send is in progress any more
    STOP = auto()
    REMOVE = auto()


CONNECTED: Final = frozenset({Phase.HELD, Phase.DRAINING, Phase.DIRECT})
ENDED: Final = frozenset({Phase.STOPPED, Phase.REMOVED})
TRANSITIONS: Final[Mapping[tuple[Phase, Event], Phase]] = {
    (Phase.AWAY, Event.ATTEMPT): Phase.OPENING,
    (Phase.OPENING, Event.OPENED): Phase.HELD,
    (Phase.OPENING, Event.FAILED): Phase.AWAY,
    (Phase.HELD, Event.READY): Phase.DRAINING,
    (Phase.DRAINING, Event.EMPTY): Phase.DIRECT,
    (Phase.DIRECT, Event.PACED): Phase.DRAINING,
    **{(phase, Event.LOST): Phase.BROKEN for phase in CONNECTED},
    (Phase.BROKEN, Event.RECOVERED): Phase.AWAY,
    **{(phase, Event.STOP): Phase.STOPPED for phase in Phase if phase not in ENDED},
    **{(phase, Event.REMOVE): Phase.REMOVED for phase in Phase},
}
