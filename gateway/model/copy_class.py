"""The classes of a copy that a night counts: one row for each, from which every list is made.

The spelling of a class, its weight, its words and its colour stand here and nowhere else; the rule
that assigns it is in `gateway.night.reconcile.classify.copy_classes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self


class Severity(Enum):
    """How severe a count is; the values are classes of the style sheet."""

    BREACH = "bad"  # a delivery guarantee was violated
    STRICT = "warn"  # a violation with --strict only
    ACCOUNTED = "note"  # not delivered, and the archive has the reason
    NONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFacts:
    """The facts about all copies of a class, and the advice for them."""

    name: str
    severity: Severity
    condition: str  # completes "a copy is in this class when ..."
    meaning: str  # completes "the deliveries ..."
    advice: str = ""
    command: str = ""  # of the advice; {NAME} is the name of a message
    arrived: bool = False  # the message was received, and the target's subscribers got it
    timed: bool = False  # its delivery has a latency
    dead_letter: bool = False
    replayable: bool = False  # `gateway replay` repairs it; the copies become recovered
    allowed: str = ""  # the tally of those among them that violate a guarantee with --strict only
    usual: bool = False  # tables show it even when all counts are 0
    chart_style: str = ""  # in the chart of copies that did not arrive, or not at first


class CopyClass(Enum):
    """The result for one copy, the gravest first; a report lists them in this order."""

    _value_: str
    facts: ClassFacts

    def __new__(cls, facts: ClassFacts) -> Self:
        made = object.__new__(cls)
        made._value_, made.facts = facts.name, facts
        return made

    MISSING = ClassFacts(
        name="missing",
        severity=Severity.BREACH,
        condition="none of the above",
        meaning="were received, and the archive has no outcome for them",
        advice="Send them again, and reconcile this date again: they become recovered.",
        replayable=True,
        usual=True,
        chart_style="bad",
    )
    LOST = ClassFacts(
        name="lost in target",
        severity=Severity.BREACH,
        condition="it was delivered, and the tap at that target never saw it; from the first minute"
        " with an observed message",
        meaning="were accepted by the target's broker and never reached its subscribers",
        advice="Ask that broker's operator: a full queue, an expiry, a purge. Then send them"
        " again.",
        timed=True,
        replayable=True,
        chart_style="bad pale",
    )
    ALTERED = ClassFacts(
        name="altered",
        severity=Severity.BREACH,
        condition="an accepted payload has another hash than the received one, or no hash; or a tap"
        " saw another payload than the delivered one",
        meaning="arrived with a payload that differs from the one received",
        advice="gateway archive show ARCHIVE ID has both hashes of one. Find what changes payloads"
        " before you send them again.",
        arrived=True,
        timed=True,
        usual=True,
    )
    UNEXPECTED = ClassFacts(
        name="unexpected",
        severity=Severity.BREACH,
        condition="it has an outcome or was observed, and has no received row and no spooled one",
        meaning="appeared at a target without a received message",
        advice="Look for a second publisher on the target, and for files missing from the archive.",
    )
    DUPLICATED = ClassFacts(
        name="duplicated",
        severity=Severity.BREACH,
        condition="it was delivered, and has more than one outcome",
        meaning="arrived more than once; only copies marked as redelivered are allowed",
        advice="Ask the consumers of these names whether they processed a message twice. Look for"
        " two gateways with the same routes.",
        arrived=True,
        timed=True,
        allowed="marked",
        usual=True,
    )
    DISORDERED = ClassFacts(
        name="out of order",
        severity=Severity.BREACH,
        condition="it was delivered before a message of the same name that was received earlier",
        meaning="arrived before an earlier message of the same name",
        advice="Ask the consumers of these names whether an older value replaced a newer one.",
        arrived=True,
        timed=True,
        usual=True,
    )
    LATE = ClassFacts(
        name="delivered late",
        severity=Severity.STRICT,
        condition="its delivery took longer than `--late` seconds (300)",
        meaning="arrived later than the route's limit",
        advice="Find the hours in which the latency rises, and check the target in these hours.",
        arrived=True,
        timed=True,
    )
    DEAD = ClassFacts(
        name="dead-lettered",
        severity=Severity.ACCOUNTED,
        condition="any other rule dead-lettered it, such as a full spool or a failure of a broker;"
        " a message without a route counts once, without a target",
        meaning="could not be delivered and are dead letters with a reason",
        advice="When the cause is removed, send them again; they become recovered.",
        command="gateway dead-letters replay CONFIG",
        dead_letter=True,
        chart_style="warn",
    )
    REFUSED = ClassFacts(
        name="refused",
        severity=Severity.ACCOUNTED,
        condition="a rule that blames the message dead-lettered it: its name, headers, payload or"
        " size",
        meaning="break a rule of the target (a name, a limit, a payload) and are dead letters",
        advice="The report lists the rules. Correct the mapping, or the sender.",
        command="gateway explain {NAME} --config CONFIG",
        dead_letter=True,
        chart_style="note",
    )
    IN_FLIGHT = ClassFacts(
        name="in flight",
        severity=Severity.ACCOUNTED,
        condition="it is in the gateway's spool, and younger than `--spooled-days` (7); or its"
        " outcome may be in the journal that its own gateway has open",
        meaning="were not settled yet when the archive was read: spooled, or in an open journal",
        advice="Nothing now: the next run of gateway reconcile counts this date again.",
        chart_style="calm block",
    )
    RECOVERED = ClassFacts(
        name="recovered",
        severity=Severity.ACCOUNTED,
        condition="it was missing or a dead letter, and a replay delivered it, on the same day or"
        " later; the order checks leave it out",
        meaning="were missing or dead letters, and arrived when somebody sent them again",
        arrived=True,
        chart_style="good",
    )
    DELIVERED = ClassFacts(
        name="delivered",
        severity=Severity.NONE,
        condition="it was delivered once, unchanged and in time",
        meaning="arrived once, unchanged and in time",
        arrived=True,
        timed=True,
    )


CLASSES: Final[Mapping[str, ClassFacts]] = {each.value: each.facts for each in CopyClass}
EXCEPTION_CLASSES: Final = tuple(name for name in CLASSES if name != CopyClass.DELIVERED.value)
# Copies that may have arrived twice, and that nobody can tell from those that did; a subscriber
# sees the mark. They are also in their classes; lists show them beside `duplicated`.
REPEATS: Final[Mapping[str, str]] = {
    "redelivered": "redelivered by sources",  # marked by the broker, or where it may have been
    "resent": "sent again by the gateway",  # no answer came to an earlier attempt
}
# The counts of a target: the copies of each class, and some of these copies again.
TALLIES: Final = ("received", *CLASSES, "marked", *REPEATS)
# A message between two gateways is in a gap of the second one's source.
IN_GAP: Final = "in gap"
# A receipt with the id of a message and another payload; every publisher can write an id.
UNPROVEN: Final = "unproven"
# A second receipt of a message, which the next gateway left out by its id.
RECOGNISED: Final = "recognised"
# Receipts beside the messages, which are counted apart.
HOP_RECEIPTS: Final = (UNPROVEN, RECOGNISED)
# The classes of such messages, the gravest first; each text completes "the messages ...".
HOP_MEANINGS: Final[Mapping[str, str]] = {
    CopyClass.MISSING.value: "were delivered to a broker by one gateway, and another one that"
    " reads their names there has no receipt",
    CopyClass.ALTERED.value: "were received by the next gateway with another payload, under a path"
    " that a key signed",
    CopyClass.DUPLICATED.value: "were received more often than they were delivered",
    CopyClass.LATE.value: "were received later than the limit after their delivery",
    UNPROVEN: "were received with the id of a delivered message and another payload: they are on a"
    " publisher's word, and prove no alteration",
    IN_GAP: "were delivered while a source of the next gateway had a gap",
    CopyClass.IN_FLIGHT.value: "may be at the broker, or in an open journal of the next gateway",
    RECOGNISED: "came once more, and the next gateway knew them by their ids and left them out",
    CopyClass.DELIVERED.value: "were received by the next gateway once, unchanged and in time",
}
HOP_CLASSES: Final = tuple(HOP_MEANINGS)
HOP_LOSSES: Final = (CopyClass.MISSING.value, IN_GAP, CopyClass.IN_FLIGHT.value)  # not received
# As lists show them; the gravest comes last.
COLUMNS: Final = ("received", *reversed([*CLASSES]))
