"""The Solace endpoint against the gateway's broker and, with a Docker engine, the vendor's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace import open_sink, open_source
from gateway.endpoints.source_shell import SourceShell
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY
from tests.brokers.containers import LOOPBACK, pulled, serving, wait_until_it_serves
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.servers import SOLACE
from tests.endpoints.exchange import QUIET, collect, opened, receive, send


@pytest.fixture(scope="module", params=["gateway", "vendor"])
def settings(request: pytest.FixtureRequest) -> Iterator[SolaceSettings]:
    if request.param == "gateway":
        with SmfBroker() as broker:
            yield SolaceSettings(url=broker.url, connect_timeout=5.0)
    else:
        with serving(SOLACE, pulled(SOLACE)) as container:
            url = f"tcp://{LOOPBACK}:{container.port}"
            found = SolaceSettings(url=url, username="default", connect_timeout=5.0)
            wait_until_it_serves(open_sink(found), container)
            yield found


def source_of(settings: SolaceSettings, pattern: str, **changes: bool) -> SourceShell:
    return open_source(
        replace(settings, **changes),  # type: ignore[arg-type]  # by name
        [Subscription(pattern)],
        instance=uuid4().hex,
    )


def test_guaranteed_messages_keep_headers_and_payloads(settings: SolaceSettings) -> None:
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        priority=7,
        expiry=4_102_444_800_000_000,
        time=1_700_000_000_000_000,
        correlation_id="c",
        reply_to="answers/here",
        source_id="id",
        properties={"n": 1, "b": b"\0\1", "m": {"x": [True, None]}},
    )
    messages = [Message("t/a", payload, headers) for payload in (b"\0x", "text", {"k": b"\0"}, b"")]
    source = source_of(settings, "t/>")
    with opened(source, sink := open_sink(settings)):
        assert send(sink, *messages) == [ACCEPTED] * 4
        assert collect(source, 4) == messages


def test_direct_messages_cross(settings: SolaceSettings) -> None:
    source = source_of(settings, "d/*/x*", guaranteed=False)
    with opened(source, sink := open_sink(settings)):
        send(sink, *(Message(topic, topic.encode()) for topic in ("d/a/y", "d/a/xy", "d/b/x")))
        got = collect(source, 2)

    assert [message.address for message in got] == ["d/a/xy", "d/b/x"]


def test_an_unsettled_message_is_redelivered(settings: SolaceSettings) -> None:
    source = source_of(settings, "s/>")
    mode = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    with opened(sink := open_sink(settings)):
        with opened(source):
            send(sink, Message("s/1", b"1", mode))
            receive(source)
        with opened(source):
            (redelivered,) = collect(source, 1)

    assert redelivered.headers.redelivered


def test_a_message_retried_at_the_broker_is_redelivered(settings: SolaceSettings) -> None:
    source = source_of(settings, "r/>", retry_at_broker=True)
    mode = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    with opened(source, sink := open_sink(settings)):
        send(sink, Message("r/1", b"1", mode))
        receive(source).settle([RETRY])
        (redelivered,) = collect(source, 1)

        assert redelivered.headers.redelivered
        assert source.receive(QUIET) is None
