"""The command that imports another bridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {"import": "gateway.imports.cli.import_"}
