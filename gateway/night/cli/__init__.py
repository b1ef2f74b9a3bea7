"""The commands of the night: for an archive, and for messages to send again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "archive": "gateway.night.cli.archive",
    "reconcile": "gateway.night.cli.reconcile",
    "replay": "gateway.night.cli.replay",
    "dead-letters": "gateway.night.cli.dead_letters",
}
