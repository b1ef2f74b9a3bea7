"""NATS subjects: NATS documentation, "Subject-Based Messaging", and the server's sources."""

from __future__ import annotations

from gateway.dialects.dialect import NUL_FORBIDDEN, Dialect, Prohibition, WildcardPlacement
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.model.dead_letter_rule import CONTROL_CHARACTER, WHITE_SPACE
from gateway.model.limits import Limit, Unit

PAGE = "NATS documentation, Subject-Based Messaging"
CONTROL_LINE = 4_096  # bytes: MAX_CONTROL_LINE_SIZE of server/const.go
REST_OF_LINE = 96  # bytes: the verb, a reply subject of a client library, and the sizes
_CONTROLS = (*map(chr, range(0x01, 0x20)), "\x7f")
_NO_SPACE = Prohibition(WHITE_SPACE, "white space ends a subject")
_NO_CONTROL = Prohibition(CONTROL_CHARACTER, "a control character cannot stand in it")

NATS = Dialect(
    name="nats",
    level_noun="token",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    reference=PAGE,
    wildcard_placement=WildcardPlacement.PLAIN,  # 'a.b*' is a literal (server/sublist.go)
    empty_levels=False,
    empty_levels_in_patterns=False,
    forbidden={
        **NUL_FORBIDDEN,
        **dict.fromkeys(_CONTROLS, _NO_CONTROL),
        **dict.fromkeys("\t\n\f\r ", _NO_SPACE),
    },
    reserved_levels=("*", ">"),  # the server delivers such a publish literally
    prefix_rules=(
        PrefixRule("$", PrefixMapping.SWAP, reserved=("$",)),
        PrefixRule("_", PrefixMapping.KEEP, reply_only=("_INBOX",)),
    ),
    limits=(
        Limit(
            Unit.BYTES,
            CONTROL_LINE - REST_OF_LINE,
            "MAX_CONTROL_LINE_SIZE of nats-server, less the rest of its line",
        ),
    ),
)
