"""A table of copies: the rows that a gateway recorded, and the class of each copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.night.reconcile.classify.copy_rows import (
    AFTER,
    Row,
    dead,
    delivered,
    glimpsed,
    messages,
    received,
    replayed,
    seen,
    spooled,
    thinned,
)


class Case(NamedTuple):
    rows: Sequence[Row]
    expected: object
    id: str


CASES = [
    Case([received(1), delivered(1)], {(1, "erp"): "delivered"}, id="delivered"),
    Case([received(1)], {(1, "erp"): "missing"}, id="missing"),
    Case(
        [received(1, ["erp", "audit"]), delivered(1, "audit")],
        {(1, "erp"): "missing", (1, "audit"): "delivered"},
        id="missing-at-one-target",
    ),
    Case([received(1), dead(1)], {(1, "erp"): "refused"}, id="refused-by-a-rule"),
    Case(
        [received(1), dead(1, rule="spool-full")], {(1, "erp"): "dead-lettered"}, id="dead-lettered"
    ),
    *(
        Case([received(1), dead(1, rule=rule)], {(1, "erp"): "dead-lettered"}, id=f"dead-{rule}")
        for rule in (
            "target-removed",
            "unstorable",
            "no-stream",
            "unroutable",
            "destination",
            "queue",
            "publish-acl",
            "no-subscription",
            "not-authorized",
            "loop",
            "hops",
            "rule-of-a-plug-in",
        )
    ),
    *(
        Case([received(1), dead(1, rule=rule)], {(1, "erp"): "refused"}, id=f"refused-{rule}")
        for rule in ("too-long", "rv-forbidden-first", "library", "unselected")
    ),
    Case(
        [received(1), dead(1, rule=None)], {(1, "erp"): "dead-lettered"}, id="dead-without-a-rule"
    ),
    Case([received(1), spooled(1)], {(1, "erp"): "in flight"}, id="spooled"),
    Case([received(1), spooled(1), delivered(1)], {(1, "erp"): "delivered"}, id="was-spooled"),
    Case([received(1), thinned(1)], {}, id="thinned"),
    Case([received(1), spooled(1), thinned(1), thinned(1)], {}, id="was-held-and-thinned"),
    Case(
        [received(1), spooled(1), thinned(1), delivered(1, attempt=2)],
        {(1, "erp"): "delivered"},
        id="thinned-and-sent-after-a-crash",
    ),
    Case(
        [received(1, ["erp", "audit"]), thinned(1), spooled(1, "audit")],
        {(1, "audit"): "in flight"},
        id="thinned-at-one-target",
    ),
    Case([spooled(1), delivered(1)], {(1, "erp"): "delivered"}, id="receipt-died-with-the-process"),
    Case([received(1), delivered(1, **AFTER(61))], {(1, "erp"): "delivered late"}, id="late"),
    Case([received(1), delivered(1, **AFTER(60))], {(1, "erp"): "delivered"}, id="just-in-time"),
    Case([received(1), delivered(1, **AFTER(-9))], {(1, "erp"): "delivered"}, id="clock-set-back"),
    Case(
        [*messages(1, 2), delivered(1, source_name="n", **AFTER(2)), delivered(2, source_name="n")],
        {(1, "erp"): "delivered", (2, "erp"): "out of order"},
        id="overtaken",
    ),
    Case(
        [received(1), received(2), delivered(1, **AFTER(2)), delivered(2, source_name="other")],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="another-name-may-overtake",
    ),
    Case(
        [
            *messages(1, 2),
            delivered(1, source_name="n"),
            delivered(2, source_name="n", **AFTER(1)),
            delivered(1, source_name="n", attempt=2, **AFTER(2)),
        ],
        {(1, "erp"): "duplicated", (2, "erp"): "delivered"},
        id="a-second-delivery-is-not-overtaken",
    ),
    Case([received(1), delivered(1), seen(1)], {(1, "erp"): "delivered"}, id="seen"),
    Case(
        [received(1), received(2), delivered(1), delivered(2), seen(1)],
        {(1, "erp"): "delivered", (2, "erp"): "lost in target"},
        id="lost-in-the-target",
    ),
    Case([received(1), delivered(1), seen(1, hash=b"other")], {(1, "erp"): "altered"}, id="spoilt"),
    Case(
        [received(1), delivered(1), seen(1), seen(7)],
        {(1, "erp"): "delivered", (7, "erp"): "unexpected"},
        id="seen-but-never-bridged",
    ),
    Case(
        [*messages(1, 2), *[delivered(n, name="same") for n in (1, 2)], glimpsed(), glimpsed()],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="seen-without-identity",
    ),
    Case(
        [received(1), delivered(1, name="same"), glimpsed(), glimpsed(redelivered=True)],
        {(1, "erp"): "delivered"},
        id="seen-again-after-the-tap-died",
    ),
    Case(
        [received(1), delivered(1, name="same"), glimpsed(redelivered=True), glimpsed()],
        {(1, "erp"): "delivered"},
        id="seen-again-and-recorded-in-another-order",
    ),
    Case(
        [
            *messages(1, 2),
            *[delivered(n, name="same") for n in (1, 2)],
            glimpsed(redelivered=True),
            glimpsed(redelivered=True),
        ],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="seen-first-in-rows-that-were-lost",
    ),
    Case(
        [
            received(1),
            delivered(1, name="same"),
            glimpsed(),
            glimpsed(),
            glimpsed(redelivered=True),
        ],
        {(1, "erp"): "delivered", (99, "erp"): "unexpected"},
        id="seen-more-often-than-delivered",
    ),
    Case(
        [received(1), delivered(1, name="same", attempt=2), glimpsed(), glimpsed()],
        {(1, "erp"): "delivered"},
        id="both-attempts-seen",
    ),
    Case(
        [received(1), delivered(1, name="same", attempt=2), glimpsed(), glimpsed(), glimpsed()],
        {(1, "erp"): "delivered", (99, "erp"): "unexpected"},
        id="seen-more-often-than-attempted",
    ),
    Case(
        [
            *messages(1, 2),
            delivered(1, name="same", attempt=2),
            delivered(2, name="same"),
            glimpsed(),
            glimpsed(),
        ],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="each-of-two-alike-seen-before-a-second-attempt",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7)],
        {(1, "erp"): "delivered"},
        id="sent-before-the-process-died",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="same"), glimpsed(), glimpsed()],
        {(1, "erp"): "delivered"},
        id="sent-without-identity-before-the-process-died",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7), seen(8)],
        {(1, "erp"): "delivered"},
        id="sent-before-several-processes-died",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7, hash=b"new")],
        {(1, "erp"): "delivered", (7, "erp"): "unexpected"},
        id="another-payload-beside-a-redelivery",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7, name="new")],
        {(1, "erp"): "delivered", (7, "erp"): "unexpected"},
        id="another-name-beside-a-redelivery",
    ),
    Case(
        [received(1), delivered(1), glimpsed(name="foreign", redelivered=True)],
        {(1, "erp"): "lost in target", (99, "erp"): "unexpected"},
        id="never-bridged-and-seen-in-a-redelivery-only",
    ),
    Case(
        [*messages(1, 2), *[delivered(n, name="same") for n in (1, 2)], glimpsed()],
        {(1, "erp"): "delivered", (2, "erp"): "lost in target"},
        id="one-of-two-alike-lost",
    ),
    Case(
        [received(1), delivered(1, name="sent"), glimpsed(), seen(1)],
        {(1, "erp"): "delivered", (99, "erp"): "unexpected"},
        id="a-stranger-without-identity",
    ),
    Case(
        [received(1, ["erp", "audit"]), dead(1, "", targets=["erp", "audit"])],
        {(1, "erp"): "refused", (1, "audit"): "refused"},
        id="dead-for-all-targets",
    ),
    Case([dead(1, "", route="")], {(1, ""): "refused"}, id="dead-on-arrival"),
    Case([dead(1)], {(1, "erp"): "unexpected"}, id="dead-but-never-received"),
    Case([delivered(1)], {(1, "erp"): "unexpected"}, id="never-received"),
    Case(
        [received(1), delivered(1), delivered(1, attempt=2)],
        {(1, "erp"): "duplicated"},
        id="twice",
    ),
    Case([received(1), delivered(1), dead(1)], {(1, "erp"): "duplicated"}, id="delivered-and-dead"),
    Case([received(1), dead(1), dead(1)], {(1, "erp"): "refused"}, id="dead-twice"),
    Case([received(1), delivered(1, hash=b"other")], {(1, "erp"): "altered"}, id="altered"),
    Case(
        [received(1), delivered(1), delivered(1, hash=b"other")],
        {(1, "erp"): "altered"},
        id="altered-once-of-two",
    ),
    Case(
        [received(1), delivered(1, hash=b"other", outcome="converted")],
        {(1, "erp"): "delivered"},
        id="converted-on-purpose",
    ),
    Case([received(1, hash=None), delivered(1)], {(1, "erp"): "altered"}, id="received-no-hash"),
    Case([received(1), delivered(1, hash=None)], {(1, "erp"): "altered"}, id="delivered-no-hash"),
    Case([received(1, hash=None), delivered(1, hash=None)], {(1, "erp"): "altered"}, id="no-hash"),
    Case(
        [received(1), delivered(1, hash=None, outcome="converted")],
        {(1, "erp"): "altered"},
        id="converted-without-a-hash",
    ),
    Case([received(1), delivered(1), seen(1, hash=None)], {(1, "erp"): "altered"}, id="seen-none"),
    Case([received(1), replayed(1)], {(1, "erp"): "recovered"}, id="missing-and-replayed"),
    Case([received(1), dead(1), replayed(1)], {(1, "erp"): "recovered"}, id="dead-and-replayed"),
    Case([received(1), replayed(1, **AFTER(90))], {(1, "erp"): "recovered"}, id="replayed-late"),
    Case([received(1), replayed(1, hash=b"other")], {(1, "erp"): "altered"}, id="replayed-altered"),
    Case([replayed(1)], {(1, "erp"): "unexpected"}, id="replayed-and-never-received"),
    Case(
        [
            *messages(1, 2),
            replayed(1, source_name="n", **AFTER(9)),
            delivered(2, source_name="n", **AFTER(1)),
        ],
        {(1, "erp"): "recovered", (2, "erp"): "delivered"},
        id="a-replay-is-in-no-order",
    ),
    Case([received(1, [])], {(1, ""): "missing"}, id="no-target-and-no-end"),
    Case(
        [received(1), delivered(1), delivered(1, rule="repeat")],
        {(1, "erp"): "delivered"},
        id="the-target-knew-the-second-one",
    ),
    Case(
        [received(1), delivered(1, rule="repeat")],
        {(1, "erp"): "delivered"},
        id="the-target-knew-one-whose-answer-was-lost",
    ),
    Case(
        [received(1), delivered(1), delivered(1), delivered(1, rule="repeat")],
        {(1, "erp"): "duplicated"},
        id="the-target-knew-the-third-one-alone",
    ),
    Case(
        [received(1), delivered(1, route="copy"), received(1, route="copy")],
        {(1, "erp"): "missing"},
        id="another-route-does-not-count",
    ),
    Case(
        [received(1), delivered(1, gateway="west")],
        {(1, "erp"): "missing"},
        id="another-gateway-does-not-count",
    ),
]
MARKED = [
    Case([received(1), delivered(1), replayed(1)], True, id="replay-of-a-delivered-one"),
    Case([received(1), replayed(1), replayed(1)], True, id="replayed-twice"),
    Case([received(1), delivered(1, mode=2), replayed(1, mode=2)], True, id="replay-at-once"),
    Case([received(1), delivered(1), delivered(1), replayed(1)], False, id="twice-and-replayed"),
    Case([received(1), delivered(1), delivered(1, attempt=2)], True, id="retry"),
    Case([received(1), delivered(1, attempt=2), delivered(1, attempt=3)], True, id="two-retries"),
    Case([received(1), delivered(1), delivered(1)], False, id="first-try-twice"),
    Case([received(1), delivered(1), dead(1)], False, id="dead-as-well"),
    Case(
        [received(1), delivered(1, mode=2), delivered(1, mode=2, attempt=2)],
        False,
        id="exactly-once",
    ),
]
