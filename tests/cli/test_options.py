"""The options of a command become the fields of one value, by their names."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from gateway.cli import make_parser
from gateway.night.reconcile.follow.day import FollowOptions
from gateway.night.reconcile.job import Job
from gateway.trial.brokers.yami4 import Yami4BrokerOptions
from gateway.trial.synthetic.traffic import Traffic

RECONCILE = ("reconcile", "ARCHIVE")
LIMITS = {"max_connections", "max_list_items", "max_peer_bytes", "max_total_bytes", "frames"}


@pytest.mark.parametrize(
    ("words", "kind", "others"),
    [
        (RECONCILE, Job, {"day", "samples", "key", "now", "carried", "read_seal"}),
        (RECONCILE, FollowOptions, {"root"}),
        (("archive", "generate", "ARCHIVE", "--messages", "1"), Traffic, {"day"}),
        (("broker", "yami4"), Yami4BrokerOptions, LIMITS),
    ],
)
def test_each_field_has_an_option_or_is_none_of_the_users(
    words: tuple[str, ...], kind: type[Any], others: set[str]
) -> None:
    args = make_parser(words[0]).parse_args(words)

    assert {name for name in signature(kind).parameters if name not in args} == others
