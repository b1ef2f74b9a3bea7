"""The gaps of sources: rules, and the outages in which routes may have missed messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from typing import Final

from gateway.archive.gaps import GapRule
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.report.advice import FindingAdvice

# The meaning of each rule completes "the gap: ...".
GAP_RULES: Final[Mapping[str, FindingAdvice]] = {
    GapRule.SESSION_LOST.value: FindingAdvice(
        "the broker had lost the gateway's session when it connected again",
        "Ask the publishers to send the interval again. Raise the broker's session expiry, and"
        " its limit of queued messages.",
    ),
    GapRule.DISCONNECTED.value: FindingAdvice(
        "the source was not connected, and its broker keeps nothing for it",
        "Ask the publishers to send the interval again. A durable subscription, a queue or a"
        " kept session (QoS 1) keeps messages for the next outage.",
    ),
    GapRule.TAKEN_OVER.value: FindingAdvice(
        "another client connected with the gateway's client id",
        "Find the second client; its address is in the broker's log. Give each client its own"
        " client_id.",
    ),
    GapRule.REFUSED.value: FindingAdvice(
        "the broker refused the subscription, so it sent nothing",
        "Grant the gateway's user the right to subscribe, or correct the route's pattern.",
    ),
    GapRule.DROPPED.value: FindingAdvice(
        "the broker reported that it dropped messages",
        "Raise the broker's queue limit, or find out why the gateway received slowly:"
        " gateway status shows the full spool or the slow target. A count for all clients"
        " may be of another client; the broker's log names it.",
    ),
    GapRule.NOT_RUNNING.value: FindingAdvice(
        "the gateway was not running",
        "Messages of brokers that keep nothing are lost in this interval. Start the gateway"
        " again; plan a stop while publishers are quiet, or let the broker keep a session.",
    ),
    GapRule.WITHDRAWN.value: FindingAdvice(
        "an operator ended what the broker kept for the gateway (gateway withdraw --losing)",
        "Nothing, if the loss was intended. Otherwise ask the publishers to send the interval"
        " again.",
    ),
    GapRule.AWAY.value: FindingAdvice(
        "the source was away, and its broker kept the session; nothing was lost by itself",
        "Nothing, unless the broker's limit of queued messages was reached.",
    ),
}
_KEPT_ADVICE: Final = "Nothing: a source that missed messages has a gap of its own."
_UNKNOWN: Final = FindingAdvice(
    "the source may have missed messages", "Read the reason of each gap."
)


@dataclass(frozen=True, slots=True)
class ReportedGap:
    """A gap of a source, for one of its routes, or of a gateway that did not run.

    `lost` is None where the broker gives no number. A gap that is `kept` lost nothing by itself.
    """

    route: str
    endpoint: str
    gateway: str
    rule: str
    begin: datetime
    end: datetime
    reason: str
    lost: int | None
    kept: bool

    @property
    def counted(self) -> bool:
        """Whether messages may be lost: the broker kept no session in the gap."""
        return self.rule != GapRule.AWAY.value and not self.kept

    @property
    def label(self) -> str:
        """The source, as the report names it; an endpoint of "" stands for the gateway."""
        return self.endpoint or f"gateway {self.gateway or '-'}"

    @property
    def advice(self) -> str:
        kept = self.kept and self.rule != GapRule.AWAY.value
        return _KEPT_ADVICE if kept else rule_of(self.rule).advice

    @property
    def seconds(self) -> float:
        return (self.end - self.begin).total_seconds()


@dataclass(frozen=True, slots=True)
class ReportedOutage(ReportedGap):
    """The gaps of one endpoint with the same rule and interval, by the first; with all `routes`."""

    routes: Sequence[str]


def rule_of(name: str) -> FindingAdvice:
    """Return the meaning and the advice of a rule; a general one for an unknown rule."""
    return GAP_RULES.get(name, _UNKNOWN)


def outages(gaps: Iterable[ReportedGap]) -> list[ReportedOutage]:
    """Return the outages of `gaps`, those that may have lost messages first.

    There is a gap for each route of a source; these are one outage.
    """
    key = attrgetter("gateway", "endpoint", "rule", "begin", "end", "counted")
    found = map(_outage, by_key((key(each), each) for each in gaps).values())
    return sorted(found, key=lambda each: (not each.counted, each.begin, each.label))


def _outage(gaps: Sequence[ReportedGap]) -> ReportedOutage:
    known = {
        "reason": next(filter(None, (each.reason for each in gaps)), ""),
        "lost": max((each.lost for each in gaps if each.lost is not None), default=None),
        "routes": [route for route in dict.fromkeys(each.route for each in gaps) if route],
    }
    return ReportedOutage(**(asdict(gaps[0]) | known))
