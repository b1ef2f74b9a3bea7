"""Commands for trials: the built-in brokers and the demo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "broker": "gateway.trial.cli.broker",
    "demo": "gateway.trial.cli.demo",
}
