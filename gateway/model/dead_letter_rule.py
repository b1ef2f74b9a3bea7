"""The rules of dead letters: one table of every rule that the gateway gives, with its cause.

Given: `rejected` and the errors of names and messages take a rule of this table, and no other text.
Kept: a row of the archive, a dead letter on disk and a script have its label.
Read: the night, the lists of dead letters and the documents ask the table for the cause of a label:
the message, which would be refused again, or what is around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Self


class Cause(Enum):
    """The thing that keeps a message from its target; the value is the advice."""

    MESSAGE = "correct the mapping or the sender"
    SURROUNDINGS = "remove the cause, then send it again"


class DeadLetterRule(str):
    """A rule that makes a message a dead letter: its label, which is the text itself.

    `remedy` says what removes the cause of this rule; without one, the cause says it for all of its
    rules. A kind of endpoint from outside makes rules of its own.
    """

    __slots__ = ("cause", "remedy")
    cause: Cause
    remedy: str

    def __new__(cls, label: str, cause: Cause, remedy: str = "") -> Self:
        made = super().__new__(cls, label)
        made.cause, made.remedy = cause, remedy
        return made

    def __reduce__(self) -> tuple[type[DeadLetterRule], tuple[str, Cause, str]]:
        return DeadLetterRule, (str(self), self.cause, self.remedy)

    @property
    def advice(self) -> str:
        return self.remedy or self.cause.value

    def joined(self, system: str) -> DeadLetterRule:
        """Return this rule of a system to which the server of the target forwards names."""
        return DeadLetterRule(f"{system}-{self}", self.cause, self.remedy)


def _of_message(label: str) -> DeadLetterRule:
    return DeadLetterRule(label, Cause.MESSAGE)


def _around(label: str, remedy: str) -> DeadLetterRule:
    return DeadLetterRule(label, Cause.SURROUNDINGS, remedy)


NO_RULE: Final = _of_message("")  # of a copy that no rule refuses; it is false

# A name: its characters, its levels, its length.
MISPLACED_BOUNDARY: Final = _of_message("boundary")
CONTROL_CHARACTER: Final = _of_message("control-character")
DOLLAR_FIRST: Final = _of_message("dollar-first")
EMPTY: Final = _of_message("empty")
EMPTY_ELEMENT: Final = _of_message("empty-element")
EMPTY_NAME: Final = _of_message("empty-name")
ELEMENT_LENGTH: Final = _of_message("element-length")
FORBIDDEN_CHARACTER: Final = _of_message("forbidden-character")
FORBIDDEN_FIRST: Final = _of_message("forbidden-first")
FORBIDDEN_FIRST_LEVEL: Final = _of_message("forbidden-first-level")
FORBIDDEN_PATTERN: Final = _of_message("forbidden-pattern")
FORBIDDEN_TOPIC: Final = _of_message("forbidden-topic")
INBOX: Final = _of_message("inbox")
LENGTH: Final = _of_message("length")
LEVEL_TOO_LONG: Final = _of_message("level-too-long")
LOCAL: Final = _of_message("local")
NAME_ALTERED: Final = _of_message("name-altered")
NO_LEADING_SEPARATOR: Final = _of_message("no-leading-separator")
NOT_UTF_8: Final = _of_message("not-utf-8")
NUL: Final = _of_message("nul")
RESERVED: Final = _of_message("reserved")
SURROGATE: Final = _of_message("surrogate")
TOO_DEEP: Final = _of_message("too-deep")
TOO_LONG: Final = _of_message("too-long")
TOPIC: Final = _of_message("topic")
TOPIC_BYTES: Final = _of_message("topic-bytes")
TOPIC_INVALID: Final = _of_message("topic-invalid")
TOPIC_LEVELS: Final = _of_message("topic-levels")
WHITE_SPACE: Final = _of_message("white-space")
WILDCARD: Final = _of_message("wildcard")
WILDCARD_IN_NAME: Final = _of_message("wildcard-in-name")

# A name that a route makes, or does not take.
DESTINATION_KIND: Final = _of_message("destination-kind")
FIELD: Final = _of_message("field")
HIDDEN: Final = _of_message("hidden")
MISSING_PART: Final = _of_message("missing-part")
MISSING_TAG: Final = _of_message("missing-tag")
NOT_ALLOWED: Final = _of_message("not-allowed")
TAG_LIST: Final = _of_message("tag-list")
UNKNOWN_DIGEST: Final = _around(
    "unknown-digest", "give this gateway the short names of the gateway that made this one"
)
UNSELECTED: Final = _of_message("unselected")
UNSPELLABLE: Final = _of_message("unspellable")

# A subscription. Commands answer with these rules; no message breaks one.
HIDDEN_FIRST: Final = _of_message("hidden-first")
NO_SUCH_PATTERN: Final = _of_message("no-such-pattern")
SHARED_SUBSCRIPTION: Final = _of_message("shared-subscription")

# A header or a property.
CORRELATION_SIZE: Final = _of_message("correlation-size")
FIELD_NAME: Final = _of_message("field-name")
HEADER: Final = _of_message("header")
HEADER_BYTES: Final = _of_message("header-bytes")
JMS_TYPE: Final = _of_message("jms-type")
PRIORITY: Final = _of_message("priority")
PROPERTY: Final = _of_message("property")
PROPERTY_NAME: Final = _of_message("property-name")
PROPERTY_SIZE: Final = _of_message("property-size")
PROPERTY_VALUE: Final = _of_message("property-value")
QOS: Final = _of_message("qos")
REPLY_TO: Final = _of_message("reply-to")
RETAIN: Final = _of_message("retain")

# A payload: its kind, its values, its size.
INTEGER_RANGE: Final = _of_message("integer-range")
INTEGER_SIZE: Final = _of_message("integer-size")
MAP_NAME: Final = _of_message("map-name")
MAP_VALUE: Final = _of_message("map-value")
MESSAGE_BYTES: Final = _of_message("message-bytes")
MESSAGE_SIZE: Final = _of_message("message-size")
MIXED_LIST: Final = _of_message("mixed-list")
NESTED_LIST: Final = _of_message("nested-list")
NESTING: Final = _of_message("nesting")
NULL_VALUE: Final = _of_message("null-value")
PACKET_SIZE: Final = _of_message("packet-size")
PAYLOAD: Final = _of_message("payload")
PAYLOAD_FORMAT: Final = _of_message("payload-format")
PAYLOAD_KIND: Final = _of_message("payload-kind")
VALUE_TYPE: Final = _of_message("value-type")

# A message that a driver or a broker refuses, and would refuse again.
LIBRARY: Final = _of_message("library")
REFUSED: Final = _of_message("refused")
STREAM: Final = _of_message("stream")
UNWRITABLE: Final = _of_message("unwritable")

# The broker of the target.
BROKER_EXCEPTION: Final = _around("broker-exception", "see the log of the broker")
DESTINATION: Final = _around("destination", "make the topic or queue at the broker")
NO_STREAM: Final = _around("no-stream", "make a stream that has the subject")
NO_SUBSCRIPTION: Final = _around("no-subscription", "let a client or a queue subscribe to the name")
NOT_AUTHORISED: Final = _around("not-authorised", "let the gateway's user publish to the name")
NOT_AUTHORIZED: Final = _around("not-authorized", NOT_AUTHORISED.remedy)  # of JMS
PARTITION: Final = _around(
    "partition", "give the topic so many partitions, or write a lower number"
)
POISONED: Final = _around("poisoned", "find out why the broker closes the connection")
PUBLISH_ACL: Final = _around("publish-acl", NOT_AUTHORISED.remedy)
QUEUE: Final = _around("queue", "make the queue at the broker")
TEMPORARY_UNKNOWN: Final = _around(
    "temporary-unknown", "let the requester ask again: its temporary queue is gone"
)
UNROUTABLE: Final = _around("unroutable", "make a queue that takes the name")

# Loops in the wiring of brokers and gateways.
HOPS: Final = _around("hops", "remove the loop, or raise `gateway.max_hops`")
IMPORTED_LOOP: Final = _around("imported-loop", "remove the loop between import, export and route")
LOOP: Final = _around("loop", "remove the loop between the brokers, or use the message elsewhere")

# The gateway: its spool, its time, its configuration, its faults.
EXPIRED: Final = _around("expired", "end the outage or the delay: its time was over")
INTERNAL: Final = _around("internal", "report the fault, and update the gateway")
NO_ENDPOINT: Final = _around("no-endpoint", "configure the endpoint again")
NO_ROUTE: Final = _around("no-route", "configure a route that takes it to that target")
SPOOL_AGE: Final = _around("spool-age", "end the outage of the target, or raise `spool.seconds`")
SPOOL_DAMAGED: Final = _around("spool-damaged", "replace the disk; a night names what is missing")
SPOOL_FULL: Final = _around("spool-full", "end the outage of the target, or enlarge the spool")
TARGET_REMOVED: Final = _around("target-removed", "configure the target again")
UNSTORABLE: Final = _around("unstorable", "end the outage of the target")

# The table: every rule above, by its label.
RULES: Final[Mapping[str, DeadLetterRule]] = {
    each: each for each in list(globals().values()) if isinstance(each, DeadLetterRule) and each
}
# EMS imports names from these systems and exports names to them (User's Guide, 15 and 16).
JOINED_SYSTEMS: Final = ("rv", "smartsockets")
# The labels of the rules that blame the message.
BLAMING: Final = frozenset(
    str(label)
    for each in RULES.values()
    if each.cause is Cause.MESSAGE
    for label in (each, *map(each.joined, JOINED_SYSTEMS))
)


def advice_of(label: str) -> str:
    """Return what to do about the dead letters of a rule."""
    return RULES[label].advice if label in RULES else cause_of(label).value


def cause_of(label: str) -> Cause:
    """Return the cause of the rule with a label; a row of the archive has no more of a rule.

    A label outside the table is of a kind from outside, or of a later gateway. Its cause counts as
    the surroundings: a message that is sent again is delivered, or refused with the same reason.
    The other advice would leave a message undelivered that needs no other mapping.
    """
    return Cause.MESSAGE if label in BLAMING else Cause.SURROUNDINGS
