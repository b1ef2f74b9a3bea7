"""Admission: an error on one message, and duplicates by their identity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.model.message import GATEWAY_ID, Headers, Message, Payload
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.selectors.selector import Selector
from gateway.runtime.delivery.admission import Admission
from gateway.runtime.delivery.duplicates import DuplicateFilter, Identity, SettledBatch
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.wiring import make_source_binding
from tests.runtime.one_route import ONE_ROUTE
from tests.runtime.received_batches import received_batch
from tests.runtime.test_pump import OneBatchSource

SELECTOR = '    from: {endpoint: here, pattern: "a/{rest...}", selector: "n = 1"}\n'


def test_a_failing_selector_refuses_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    admission = Admission(GatewayIdentity("test"), DuplicateFilter(), EchoCache().take_origin)
    messages = [Message("a/1", b"", Headers(properties={"bad": 1})), Message("a/2", b"")]

    batch = received_batch(messages)
    admission.match(batch, binding.rules)
    (refused,), (accepted,) = batch.matches

    assert refused.route is None
    assert [each.rule for each in refused.deliveries] == ["internal"]
    assert accepted.route is not None
    assert [str(each) for each in batch.failures] == ["one value"]


GATEWAY = Headers(properties={GATEWAY_ID: "00" * 16})
SOURCE = Headers(source_id="ID:1")
HASH = fingerprint(b"one")[1]


def duplicates_of(
    tmp_path: Path, earlier: Sequence[Message], later: Sequence[Message], *known: Identity
) -> list[int]:
    """Return the positions in `later` that count as duplicates of `earlier` or of `known`."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    binding = make_source_binding(load(file), "here", OneBatchSource())
    duplicates = DuplicateFilter()
    duplicates.remember(known)
    admission = Admission(GatewayIdentity("test"), duplicates, EchoCache().take_origin)
    admission.recognise(received_batch(earlier), binding.rules, SettledBatch())
    batch = received_batch(later)
    admission.recognise(batch, binding.rules, SettledBatch())
    return [*batch.earlier]


@pytest.mark.parametrize("headers", [GATEWAY, SOURCE], ids=["gateway-id", "source-id"])
def test_a_forged_identity_does_not_drop_a_message(tmp_path: Path, headers: Headers) -> None:
    """A publisher that may write the name can guess the next identity, but not the payload."""
    forged, honest = (Message("a/1", payload, headers) for payload in (b"forged", b"one"))

    assert duplicates_of(tmp_path, [forged], [honest]) == []
    assert duplicates_of(tmp_path, [honest], [honest]) == [0]
    assert duplicates_of(tmp_path, [forged, honest], [forged, honest]) == [0, 1]


@pytest.mark.parametrize("payload", [b"one", "one"])
def test_a_repeated_message_of_an_earlier_run_is_a_duplicate(
    tmp_path: Path, payload: Payload
) -> None:
    again = Message("a/1", payload, SOURCE)

    assert duplicates_of(tmp_path, [], [again], ("a/1", "ID:1", HASH)) == [0]
    assert duplicates_of(tmp_path, [], [again], ("a/1", "ID:1", bytes(16))) == []


def test_a_repeated_map_is_a_duplicate(tmp_path: Path) -> None:
    first, again = (Message("a/1", {"a": 1, "b": [True]}, SOURCE) for _ in range(2))

    assert duplicates_of(tmp_path, [first], [again]) == [0]
