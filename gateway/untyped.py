"""A name for values that no type can be written for."""

from __future__ import annotations

from typing import Any, TypeAlias

Untyped: TypeAlias = Any
"""A value whose type nothing declares: an object of a library without annotations, or a value of a
document before somebody has judged it."""
