"""Find the place of a key in the configuration files."""

from __future__ import annotations

from gateway.config.load import Configuration
from gateway.config.nodes import KeyPath, SourceLocation


def key_location(at: KeyPath, configuration: Configuration) -> SourceLocation:
    """Return the location of a key, or of the nearest key above it that a file contains."""
    while at and at not in configuration.locations:
        at = at[:-1]
    return configuration.locations.get(at, SourceLocation("", 1, 1))
