"""Kafka topics and keys: Topic.java of Apache Kafka."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, WildcardPlacement
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.dialects.parts import BOUNDARY_EXCLUDED
from gateway.model.limits import Limit, Unit

_TOPIC_JAVA = "Apache Kafka, Topic.java"
_OF_THE_SERVERS = (  # Topic.java, INTERNAL_TOPICS, and the log of the controllers
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
)

_KEY = Dialect(
    name="kafka",
    level_noun="level",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=0,  # ':>' selects every key
    reference="Apache Kafka: a key is bytes",
    wildcard_placement=WildcardPlacement.PLAIN,
)
KAFKA = Dialect(
    name="kafka",
    level_noun="level",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    reference=_TOPIC_JAVA,
    alphabet=r"A-Za-z0-9_\-",
    forbidden_topics=(".", "..", *_OF_THE_SERVERS),
    exclusions=BOUNDARY_EXCLUDED,
    prefix_rules=(PrefixRule("$", PrefixMapping.SWAP),),
    limits=(Limit(Unit.CHARACTERS, 249, _TOPIC_JAVA),),
    key=_KEY,
)
