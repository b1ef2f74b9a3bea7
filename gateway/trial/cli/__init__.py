"""Commands for trials: a first try, the built-in brokers, the demo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "try": "gateway.trial.cli.try_",
    "broker": "gateway.trial.cli.broker",
    "demo": "gateway.trial.cli.demo",
}
