"""Values of references: `${env:NAME}` is a variable, `${file:PATH}` the content of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.config.values.placeholders import placeholder_text

MAX_SECRET: Final = 1 << 20  # bytes; a larger or endless file is not a secret
REFERENCE: Final = re.compile(r"\$\{(env|file):([^}]*)\}")


class ReferenceValues:
    """Variables of an environment, and files relative to `folder`; or placeholders for all."""

    def __init__(
        self, environment: Mapping[str, str] | None, folder: Path, *, without_secrets: bool
    ) -> None:
        self.without_secrets = without_secrets
        self._environment = os.environ if environment is None else environment
        self._folder = folder

    def find(self, found: re.Match[str]) -> str | None:
        """Return the value of a match of `REFERENCE`, or None when there is none."""
        if self.without_secrets:
            return placeholder_text(found)
        source, name = found.groups()
        return self._environment.get(name) if source == "env" else self._content(name)

    def hint(self, found: re.Match[str]) -> str:
        """Return what to do about a reference without a value."""
        if found[1] == "env":
            return "set the variable before the gateway starts"
        return f"create or mount the file {self._folder / found[2]} before the gateway starts"

    def _content(self, name: str) -> str | None:
        try:
            with (self._folder / name).open("rb") as file:
                data = file.read(MAX_SECRET + 1)
            return None if len(data) > MAX_SECRET else data.decode().rstrip("\r\n")
        except (OSError, ValueError):
            return None
