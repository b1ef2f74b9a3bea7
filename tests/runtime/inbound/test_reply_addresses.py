"""Reply addresses that were handed out are admitted for a time, and take bounded memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.routing.origin_path import BrokerName
from gateway.runtime.inbound import reply_addresses
from gateway.runtime.inbound.reply_addresses import ReplyAddresses

HERE, THERE = BrokerName(address="mqtt://here"), BrokerName(address="mqtt://there")


def test_an_address_is_admitted_at_its_broker_for_its_time(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints: {a: {kind: memory}, b: {kind: memory}}\n"
        "routes: {r: {from: {endpoint: a, pattern: 'x/#'}, to: {endpoint: b}, replies_within: 60}}"
    )
    (found,) = load(file).routes
    route = replace(found, broker=HERE)
    now = [0.0]
    replies = ReplyAddresses(lambda: now[0])
    assert not replies.admits(route, "x/1")
    replies.note(HERE, "x/1")
    replies.note(THERE, "x/2")
    now[0] = 60.0
    assert replies.admits(route, "x/1")
    assert not replies.admits(route, "x/2")
    replies.note(HERE, "x/1")
    now[0] = 120.0
    assert replies.admits(route, "x/1")
    now[0] = 120.1
    assert not replies.admits(route, "x/1")


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_addresses, "MAX_SIZE", 3_000)
    replies = ReplyAddresses()
    for number in range(10_000):
        replies.note(HERE, f"x/{number}")
    kept = [address for _, address in replies._times]  # noqa: SLF001
    assert 0 < len(kept) < 12
    assert kept[-1] == "x/9999"
