"""An error on one message makes only that message a dead letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.model.message import Headers, Message
from gateway.routing.selectors.selector import Selector
from gateway.runtime.context import GatewayContext, MessageIds
from gateway.runtime.inbound.admission import Admission
from gateway.runtime.inbound.dedup import DuplicateFilter
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.monitor.counters import RouteCounters
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.wiring import make_source_binding
from tests.runtime.one_route import ONE_ROUTE
from tests.runtime.test_pump import OneBatchSource

SELECTOR = '    from: {endpoint: here, pattern: "a/{rest...}", selector: "n = 1"}\n'


def test_a_failing_selector_refuses_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def matches(_: Selector, headers: Headers) -> bool:
        if "bad" in headers.properties:
            raise ValueError("one value")
        return True

    monkeypatch.setattr(Selector, "matches", matches)
    file = tmp_path / "gateway.yaml"
    lines = ONE_ROUTE.splitlines(keepends=True)
    file.write_text("".join(SELECTOR if "from:" in line else line for line in lines))
    binding = make_source_binding(load(file), "here", OneBatchSource())
    ledger = Ledger({"all": RouteCounters()})
    context = GatewayContext("test", {}, ledger, MessageIds(1), EchoCache(), {})
    admission = Admission("here", context, DuplicateFilter())
    messages = [Message("a/1", b"", Headers(properties={"bad": 1})), Message("a/2", b"")]

    (refused,), (accepted,) = admission.match(messages, binding, {})

    assert refused.route is None
    assert [each.rule for each in refused.deliveries] == ["internal"]
    assert accepted.route is not None
    assert caplog.text.count("internal error while routing") == 1
