"""Words that people call a system by: products, protocols and other spellings.

Each leads to a dialect, to a kind of endpoint and to a choice of `gateway init`, or to a sentence
where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

MAX_WORD: Final = 40  # characters
_OVER_AMQP: Final = (
    "over AMQP 1.0 the names are those of the server: rabbitmq for RabbitMQ and Artemis, smf for"
    " Solace and Service Bus, ibm for IBM MQ"
)
_IN_PROCESS: Final = "a memory endpoint has the dialect in its file, mqtt without one"
_BEHIND_EMS: Final = "its messages come through EMS: `kind: jms`, `dialect: [ems, {0}]`"


@dataclass(frozen=True, slots=True)
class Called:
    """The words for a system, and a name or a sentence where a dialect or a kind stands."""

    words: str  # in lower case, without signs
    dialect: str
    kind: str
    starter: str  # the choice of `gateway init`


_TABLE: Final = (
    Called("mqtt mqtt5 mosquitto emqx hivemq nanomq vernemq", "mqtt", "mqtt", "mqtt"),
    Called("awsiot natsmqtt natsmqtt29 rabbitmqmqtt", "mqtt", "mqtt", "mqtt"),
    Called("solace smf pubsub pubsubplus", "smf", "solace", "solace"),
    Called("ems tibco tibcoems jms", "ems", "jms", "ems"),
    Called("activemq activemqclassic openwire", "ems", "jms", "activemq"),
    Called("artemis activemqartemis amqbroker", "rabbitmq", "amqp", "amqp"),
    Called("ibm ibmmq websphere webspheremq wmq mq", "ibm", "jms", "ibm"),
    Called("rv rendezvous tibrv tibcorv", "rv", _BEHIND_EMS.format("rv"), "ems"),
    Called("smartsockets ss", "smartsockets", _BEHIND_EMS.format("smartsockets"), "ems"),
    Called("yami yami4", "yami4", "yami4", "yami4"),
    Called("nats natsserver jetstream", "nats", "nats", "nats"),
    Called("rabbitmq rabbit amqp091 lavinmq", "rabbitmq", "rabbitmq", "rabbitmq"),
    Called("rabbitmq4", "rabbitmq", "amqp", "amqp"),
    Called("amqp amqp1 amqp10 qpid", _OVER_AMQP, "amqp", "amqp"),
    Called("servicebus azureservicebus", "smf", "amqp", "amqp"),
    Called("kafka apachekafka redpanda confluent", "kafka", "kafka", "kafka"),
    Called("memory", _IN_PROCESS, "memory", "mqtt"),
)
_NOTHING: Final = Called("", "", "", "")
_ROWS: Final = {word: row for row in _TABLE for word in row.words.split()}


def dialect_hint(word: str) -> str:
    """Return what `word` means where a dialect stands; "" for an unknown word."""
    return _hint(_found(word).dialect)


def kind_hint(word: str) -> str:
    """Return what `word` means where a kind of endpoint stands; "" for an unknown word."""
    return _hint(_found(word).kind)


def choice_hint(word: str, choices: Collection[str]) -> str:
    """Return which of the choices of an option `word` means; "" when it means none."""
    row = _found(word)
    meant = (each for each in (row.starter, row.kind, row.dialect) if each in choices)
    return _hint(next(meant, ""))


def _found(word: str) -> Called:
    return _ROWS.get(re.sub(r"[^a-z0-9]", "", word[:MAX_WORD].lower()), _NOTHING)


def _hint(meant: str) -> str:
    return f"did you mean {meant!r}?" if meant and " " not in meant else meant
