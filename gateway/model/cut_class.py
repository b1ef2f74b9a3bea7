"""The classes of a cut: what a night says about a message that a route left out for a target.

One row for each class, from which page, terminal, JSON, metrics and documents are made. The rule
that assigns a class is in `gateway.night.reconcile.classify.cuts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

# Rule of the cut of a copy that another one of its name stands for, which `reason` names by its id.
# The message has a received row with the target as well, and perhaps a spooled one.
THINNED: Final = "thinned"

# Rules of cut rows with which the mapping itself left a message out: a `retained: ignore`, a
# selector, a limit of equal messages, and `thin`, which a route has because somebody wants it.
LEFT_OUT_RULES: Final = ("ignored", "unselected", "loop-limit", THINNED)

# The reason of a cut row whose message its broker had retained.
RETAINED: Final = "retained: a broker sends it again to each new subscription"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutFacts:
    """The facts about all cuts of a class."""

    name: str
    condition: str  # completes "a cut is in this class when ..."
    meaning: str  # completes "the messages ..."
    told: bool = False  # it is not a proven outcome: as a gap of a source, the verdict says it
    listed: bool = False  # each message has a row of its own


class CutClass(Enum):
    """The result for one cut, the gravest first; a report lists them in this order."""

    _value_: str
    facts: CutFacts

    def __new__(cls, facts: CutFacts) -> Self:
        made = object.__new__(cls)
        made._value_, made.facts = facts.name, facts
        return made

    ON_WORD = CutFacts(
        name="cut on another's word",
        condition="none of the others",
        meaning="were cut, and neither the archive nor a key proves that they repeat another one:"
        " their gateways share neither, two brokers have one broker_id, or a publisher wrote their"
        " path",
        told=True,
        listed=True,
    )
    IN_FLIGHT = CutFacts(
        name="cut in flight",
        condition="what it repeats may be in the journal that a gateway has open",
        meaning="may repeat a message of an open journal; the next night judges them again",
        listed=True,
    )
    RETAINED = CutFacts(
        name="cut retained",
        condition="its broker kept it as a retained message, from before the rows that the night"
        " reads",
        meaning="are retained messages from before the rows that this night reads",
        listed=True,
    )
    PROVEN = CutFacts(
        name="cut",
        condition="a key signed its path; or an earlier row has the same name and payload at the"
        " same broker, and no other cut of the route and target used it",
        meaning="repeat a message that the archive has, or have a path that a key signed",
    )
    LEFT_OUT = CutFacts(
        name="left out",
        condition="the mapping itself left it out, by the rule " + ", ".join(LEFT_OUT_RULES),
        meaning="were left out by a setting of the mapping, which the rule names",
    )


CUT_CLASSES: Final = {each.value: each.facts for each in CutClass}
ON_WORD: Final = CutClass.ON_WORD.value
