"""RabbitMQ routing keys and bindings: the documents on topic exchanges, and AMQP 0-9-1."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, WildcardPlacement
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.model.limits import Limit, Unit

RABBITMQ = Dialect(
    name="rabbitmq",
    level_noun="word",
    separator=".",
    any_one="*",
    any_many="#",
    any_many_minimum=0,  # 'lazy.#' matches 'lazy' too
    any_many_anywhere=True,
    reference="RabbitMQ tutorials, Topics",
    wildcard_placement=WildcardPlacement.PLAIN,  # 'a.b*' is a literal (measured with 3.10.8)
    reserved_levels=("*", "#"),  # the server delivers such a key, and no binding selects it alone
    prefix_rules=(PrefixRule("$", PrefixMapping.SWAP),),
    limits=(Limit(Unit.BYTES, 255, "AMQP 0-9-1, 4.2.5.3: short strings"),),
)
