"""Names and subscriptions of one system: the dialect and the functions that interpret it.

`gateway.translate` converts between two systems.
"""

from gateway.dialects.advice import warnings_of
from gateway.dialects.dialect import Dialect
from gateway.dialects.names import (
    check_name,
    parse_subject,
    read_name,
    read_tags,
    render_subject,
)
from gateway.dialects.patterns import (
    matches_text,
    parse_pattern,
    read_pattern,
    render_pattern,
    shared_prefix_of,
)

__all__ = [
    "Dialect",
    "check_name",
    "matches_text",
    "parse_pattern",
    "parse_subject",
    "read_name",
    "read_pattern",
    "read_tags",
    "render_pattern",
    "render_subject",
    "shared_prefix_of",
    "warnings_of",
]
