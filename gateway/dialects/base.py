"""How one messaging system spells names and subscriptions: the facts and the functions over them.

It knows one system at a time; what a name becomes elsewhere is for `gateway.translate`.
"""

from gateway.dialects.advice import warnings_of
from gateway.dialects.dialect import Dialect, Star
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
    share_of,
)

__all__ = [
    "Dialect",
    "Star",
    "check_name",
    "matches_text",
    "parse_pattern",
    "parse_subject",
    "read_name",
    "read_pattern",
    "read_tags",
    "render_pattern",
    "render_subject",
    "share_of",
    "warnings_of",
]
