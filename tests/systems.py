"""The table of systems: one row feeds the laws, strategies, loops, proofs and documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.dialects import rules


@dataclass(frozen=True)
class System:
    """One system as the tests see it, without a look at its `Dialect`."""

    name: str
    separator: str
    rest: str  # the wildcard for the rest of a name
    is_legal_name: Callable[[str, bool], bool]
    is_legal_pattern: Callable[[str], bool]
    selects: Callable[[str, str], bool]
    leading: str = ""
    forbidden: str = ""  # characters that no level contains, besides the separator
    empty_levels: bool = True
    tag_lists: bool = False
    keys: bool = False  # a name may have a key behind a colon

    def spell(self, *levels: str) -> str:
        return self.leading + self.separator.join(levels)

    @property
    def everything(self) -> str:
        """The subscription that selects every ordinary name."""
        return self.spell(self.rest)


_ROWS = (
    System(
        "ems", ".", ">", rules.legal_ems_name, rules.legal_ems_pattern, rules.ems_selects,
        forbidden="*>", empty_levels=False,
    ),
    System(
        "rv", ".", ">", rules.legal_rv_name, rules.legal_rv_pattern, rules.rv_selects,
        forbidden="*>", empty_levels=False,
    ),
    System(
        "mqtt", "/", "#", rules.legal_mqtt_name, rules.legal_mqtt_pattern, rules.mqtt_selects,
        forbidden="+#\0",
    ),
    System("ibm", "/", "#", rules.legal_ibm_name, rules.legal_ibm_pattern, rules.ibm_selects),
    System(
        "smf", "/", ">", rules.legal_smf_name, rules.legal_smf_pattern, rules.smf_selects,
        forbidden="\0",
    ),
    System(
        "yami4", ".", "*", rules.legal_yami4_name, rules.legal_yami4_pattern,
        rules.yami4_selects, forbidden=",\0", tag_lists=True,
    ),
    System(
        "smartsockets", "/", "...", rules.legal_smartsockets_name,
        rules.legal_smartsockets_pattern, rules.smartsockets_selects, leading="/",
        forbidden="*", empty_levels=False,
    ),
    System(
        "nats", ".", ">", rules.legal_nats_name, rules.legal_nats_pattern, rules.nats_selects,
        forbidden=rules.NATS_FORBIDDEN, empty_levels=False,
    ),
    System(
        "rabbitmq", ".", "#", rules.legal_rabbitmq_name, rules.legal_rabbitmq_pattern,
        rules.rabbitmq_selects,
    ),
    System(
        "kafka", ".", ">", rules.legal_kafka_name, rules.legal_kafka_pattern,
        rules.kafka_selects, forbidden=rules.KAFKA_FORBIDDEN, keys=True,
    ),
)  # fmt: skip
SYSTEMS: dict[str, System] = {row.name: row for row in _ROWS}


def legal_name(system: str, name: str, *, made: bool = False) -> bool:
    """Return whether a client may publish to `name`; `made` for a name the gateway makes."""
    row = SYSTEMS[system]
    return _is_text(name) and bool(name or row.tag_lists) and row.is_legal_name(name, made)


def legal_pattern(system: str, text: str) -> bool:
    """Return whether a client may subscribe to `text`, apart from its length."""
    row = SYSTEMS[system]
    return _is_text(text) and bool(text or row.tag_lists) and row.is_legal_pattern(text)


def selects(system: str, pattern: str, name: str) -> bool:
    """Return whether the subscription receives the name; both are legal."""
    return SYSTEMS[system].selects(pattern, name)


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
