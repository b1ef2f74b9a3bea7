"""The feed of the demo: orders, sensor readings, and topics that need escapes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final

REGIONS: Final = ("emea", "apac", "amer", "latam")
DESKS: Final = ("fx", "rates", "credit", "equities", "commodities")
SITES: Final = ("hall-1", "hall-2", "weaving", "paint")
UNITS: Final = ("motor 7", "pump 3", "oven 12", "robot 4")
READINGS: Final = ("temperature", "pressure", "vibration", "power")

# Each name is legal in MQTT, and a plain swap of separators translates it incorrectly.
SPECIAL_TOPICS: Final = (
    "plant/hall-2/v1.2/firmware",  # a dot, which separates elements in EMS
    "plant/hall-2//temperature",  # an empty level: EMS forbids it
    "plant/paint/robot 4/",  # an empty level at the end
    "plant/weaving/rate*2/temperature",  # EMS wildcard characters
    "plant/weaving/limit>80/alarm",
    "plant/paint/größe/höhe",  # two bytes a letter
    "plant/hall-1/100%/load",  # the escape character itself
    "plant/hall-1/a%2Eb/load",  # text that looks like an escape
)
# past EMS's 249 characters
TOO_LONG: Final = "plant/hall-1/" + "/".join(["a-rather-long-level-of-a-name"] * 9)
SPECIAL_INTERVAL: Final = 100
TOO_LONG_INTERVAL: Final = 1000


def messages(number: int, seed: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yield `number` pairs of MQTT topic and payload, the same for the same seed."""
    random = Random(seed)  # noqa: S311  # not for security
    for sequence in range(number):
        if sequence % TOO_LONG_INTERVAL == TOO_LONG_INTERVAL - 1:
            topic = TOO_LONG
        elif sequence % SPECIAL_INTERVAL == SPECIAL_INTERVAL - 1:
            topic = random.choice(SPECIAL_TOPICS)
        elif random.random() < 0.6:  # noqa: PLR2004  # more orders than readings
            order = random.randrange(500)
            topic = f"shop/orders/{random.choice(REGIONS)}/{random.choice(DESKS)}/{order}"
        else:
            topic = f"plant/{random.choice(SITES)}/{random.choice(UNITS)}/{random.choice(READINGS)}"
        value = {"sequence": sequence, "value": round(random.uniform(0, 1000), 2)}
        yield topic, json.dumps(value).encode()


def alarms(number: int, seed: int = 2) -> Iterator[tuple[str, bytes]]:
    """Yield `number` pairs of YAMI4 tag list and payload; each list has two tags."""
    random = Random(seed)  # noqa: S311  # as above
    for sequence in range(number):
        tags = f"alarm.{random.choice(SITES)}.{sequence},maintenance.{random.choice(UNITS)}"
        yield tags, json.dumps({"sequence": sequence}).encode()


def is_order(topic: str) -> bool:
    return topic.startswith("shop/orders/")


def is_of_the_plant(topic: str) -> bool:
    return topic.startswith("plant/")


def is_reading(topic: str) -> bool:
    """Return whether `topic` is a reading that EMS can name; TOO_LONG exceeds its limit."""
    return is_of_the_plant(topic) and topic != TOO_LONG


def is_temperature(topic: str) -> bool:
    """Return whether a reading matches the tag filter, whose `*` needs a character."""
    return re.fullmatch(r"plant/[^/]*/[^/]+/temperature", topic) is not None


def expected(number: int, predicates: Mapping[str, Callable[[str], bool]]) -> dict[str, int]:
    """Count the first `number` messages by the first level of their topic at the target."""
    topics = [topic for topic, _ in messages(number)]
    return {level: sum(map(selects, topics)) for level, selects in predicates.items()}
