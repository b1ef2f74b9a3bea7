"""AMQP 1.0 without a RabbitMQ: the addresses of each product, and outcomes of a scripted server."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.endpoints.amqp.addresses import address_of, name_of, selector_filter
from gateway.endpoints.amqp.log_in import shown
from gateway.endpoints.amqp.wanted import wanted_addresses
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.amqp import KNOWN, AmqpSettings
from gateway.errors import EndpointError, SubscriptionRefusedError
from gateway.model.dead_letter_rule import DESTINATION, NOT_AUTHORISED, REFUSED, DeadLetterRule
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome
from gateway.wire.amqp import frames, values
from gateway.wire.amqp.values import NULL, TRUE, composite, map_of, string, symbol, uint
from tests.brokers.hostile_servers import serving
from tests.endpoints.exchange import opened, send
from tests.hostile.amqp_servers import (
    FRAME,
    Fields,
    amqp,
    attached,
    credit,
    error,
    frame,
    outcome,
    say,
    scripted,
)

ADDRESSES = [
    ("rabbitmq-4", "a.b/c d", "/exchanges/amq.topic/a.b%2Fc%20d"),
    ("rabbitmq-4", "queue:a/b", "/queues/a%2Fb"),
    ("artemis", "a.b", "a.b"),
    ("artemis", "queue:a::b", "a::b"),
    ("servicebus", "orders", "orders"),
    ("servicebus", "queue:t/Subscriptions/s", "t/Subscriptions/s"),
    ("ibmmq", "a/b", "a/b"),
    ("solace", "a/b", "topic://a/b"),
    ("solace", "queue:q", "queue://q"),
]


@pytest.mark.parametrize(("known", "name", "address"), ADDRESSES)
def test_the_address_of_a_name(known: str, name: str, address: str) -> None:
    settings = AmqpSettings(known=known)

    assert address_of(name, settings) == address
    if known in {"rabbitmq-4", "solace"} or not name.startswith("queue:"):
        assert name_of({}, address, settings) == name


def test_each_product_has_an_address() -> None:
    assert {known for known, _, _ in ADDRESSES} == {*KNOWN}


def test_a_source_of_rabbitmq_has_one_queue_and_others_a_link_for_each_pattern() -> None:
    patterns = ["a.#", "b.*", "a.#", "queue:q"]
    rabbitmq, artemis = AmqpSettings(queue="g"), AmqpSettings(known="artemis")

    assert wanted_addresses(rabbitmq, patterns, "r").addresses == [
        ("/queues/g-r", ""), ("/queues/q", "queue:q"),
    ]  # fmt: skip
    assert wanted_addresses(artemis, patterns, "r").addresses == [
        ("a.#", "a.#"), ("b.*", "b.*"), ("q", "queue:q"),
    ]  # fmt: skip


def _rejected(condition: str) -> bytes:
    return composite(frames.REJECTED, [error(condition, "no")])


RELEASED = composite(frames.RELEASED, [])
MODIFIED = composite(frames.MODIFIED, [TRUE])
UNDELIVERABLE = composite(frames.MODIFIED, [NULL, TRUE])
OUTCOMES: list[tuple[bytes, Outcome, str]] = [
    (composite(frames.ACCEPTED, []), Outcome.ACCEPTED, ""),
    (RELEASED, Outcome.RETRY, "no-room"),
    (MODIFIED, Outcome.RETRY, ""),
    (UNDELIVERABLE, Outcome.REJECTED, REFUSED),
    (composite(frames.REJECTED, []), Outcome.RETRY, "no-room"),
    (_rejected("amqp:resource-limit-exceeded"), Outcome.RETRY, "no-room"),
    (_rejected("amqp:not-found"), Outcome.REJECTED, DESTINATION),
    (_rejected("amqp:unauthorized-access"), Outcome.REJECTED, NOT_AUTHORISED),
    (_rejected("vendor:any"), Outcome.REJECTED, REFUSED),
]


@pytest.mark.parametrize(("version", "refused"), [("3.10.8", True), ("4.0.5", False)])
def test_the_plug_in_of_rabbitmq_3_is_refused(version: str, refused: bool) -> None:
    """It accepts messages that no queue takes."""
    told = map_of({symbol("product"): string("RabbitMQ"), symbol("version"): string(version)})
    answer = say(frame(frames.OPEN, [string("server"), None, uint(FRAME), *[None] * 6, told]))
    with serving(amqp(frames.OPEN, answer)) as port:
        sink = make_sink(_settings(port))
        found = (
            pytest.raises(EndpointError, match=r"no queue takes; use the kind `rabbitmq`$")
            if refused
            else nullcontext()
        )
        with found:
            sink.open()
        sink.close()


@pytest.mark.parametrize(("state", "wanted", "rule"), OUTCOMES)
@pytest.mark.parametrize("settled", [True, False])
def test_an_outcome_settles_a_range(
    state: bytes, wanted: Outcome, rule: str, settled: bool
) -> None:
    """A receiver that does not settle first is answered."""

    def answer(asked: Fields) -> list[bytes]:
        return [outcome(0, 2, state, settled=settled)] if asked[1] == 2 else []

    with serving(amqp(frames.TRANSFER, answer)) as port, opened(sink := make_sink(_settings(port))):
        answers = send(sink, *map(_message, ("a", "a", "a")))

    assert [each.outcome for each in answers] == [wanted] * 3
    assert [each.rule for each in answers] == [rule] * 3


@pytest.mark.parametrize(
    ("condition", "rule"),
    [("amqp:not-found", DESTINATION), ("amqp:unauthorized-access", NOT_AUTHORISED)],
)
def test_a_refused_link_concerns_its_name_only(condition: str, rule: DeadLetterRule) -> None:
    def answer(asked: Fields) -> list[bytes]:
        if not asked[0].endswith("-bad"):
            fields = [uint(0), uint(9), uint(0), uint(9), uint(asked[1]), uint(0), uint(9)]
            return [attached(asked), frames.encode_frame(frames.FLOW, fields)]
        fields = [uint(asked[1]), TRUE, error(condition)]
        return [attached(asked, refused=True), frames.encode_frame(frames.DETACH, fields)]

    with serving(amqp(frames.ATTACH, answer)) as port, opened(sink := make_sink(_settings(port))):
        good, bad, again = send(sink, *map(_message, ("good", "bad", "good")))

    assert (good, again) == (ACCEPTED, ACCEPTED)
    assert (bad.outcome, bad.rule) == (Outcome.REJECTED, rule)


def test_without_credit_there_is_no_room() -> None:
    with (
        serving(amqp(frames.ATTACH, lambda asked: [attached(asked)])) as port,
        opened(sink := make_sink(_settings(port))),
    ):
        (answer,) = send(sink, _message("a"))

    assert answer.rule == "no-room"


def test_a_symbolic_mechanism_alone_is_an_offer() -> None:
    """A server may offer one mechanism as a symbol, and not as an array of one."""
    one = frames.SASL_HEADER + frames.encode_frame(
        frames.MECHANISMS, [values.symbol("PLAIN")], kind=frames.SASL
    )
    with serving(amqp("sasl", lambda _: [one])) as port, opened(make_sink(_settings(port))):
        pass


@pytest.mark.parametrize("state", [RELEASED, MODIFIED, composite(frames.REJECTED, [])])
def test_nothing_passes_a_message_that_is_sent_again(state: bytes) -> None:
    """The server takes one message at a time, refuses the first, and has room for the second."""
    script = {
        frames.ATTACH: lambda asked: [attached(asked), credit(asked[1], 1)],
        frames.TRANSFER: lambda asked: (
            [outcome(0, 0, state), credit(asked[0])]
            if not asked[1]
            else [outcome(asked[1], asked[1], composite(frames.ACCEPTED, []))]
        ),
    }
    with serving(scripted(script)) as port, opened(sink := make_sink(_settings(port))):
        answers = send(sink, _message("a"), _message("a"))
        (later,) = send(sink, _message("a"))

    assert [each.outcome for each in (*answers, later)] == [Outcome.RETRY] * 3


SELECTOR = "region = 'emea' AND JMSPriority > 4"


def test_a_selector_is_a_filter_of_the_link() -> None:
    asked: list[Fields] = []

    def answer(attach: Fields) -> list[bytes]:
        asked.append(attach)
        return [attached(attach, filters=selector_filter(SELECTOR))]

    subscriptions = [
        Subscription("queue:a", selector=SELECTOR),
        Subscription("b.#", selector=SELECTOR),
    ]
    with (
        serving(amqp(frames.ATTACH, answer)) as port,
        opened(make_source(_settings(port), subscriptions)),
    ):
        pass

    sources = [each[5].value for each in asked]
    assert [each[0] for each in sources] == ["a", "b.#"]
    for each in sources:
        (found,) = each[7].values()
        assert found == (0x468C_0000_0004, SELECTOR)


@pytest.mark.parametrize(
    "filters",
    [None, values.map_of({}), values.map_of({values.symbol(SELECTOR): NULL}), NULL, TRUE],
    ids=["absent", "none", "no-filter", "null", "no-map"],
)
def test_a_server_that_confirms_no_selector_is_refused(filters: bytes | None) -> None:
    """It would send what no route wants."""
    source_of = amqp(frames.ATTACH, lambda asked: [attached(asked, filters=filters)])
    with serving(source_of) as port:
        source = make_source(_settings(port), [Subscription("a", selector=SELECTOR)])
        with pytest.raises(SubscriptionRefusedError, match="does not evaluate the selector"):
            source.open()
        source.close()


@pytest.mark.parametrize("known", KNOWN)
def test_the_server_evaluates_a_selector_where_the_product_does(known: str, tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(f"""\
gateway: {{name: g}}
endpoints:
  a: {{kind: amqp, known: {known}}}
  b: {{kind: memory}}
routes:
  r:
    from: {{endpoint: a, pattern: "queue:q", selector: "x = 1"}}
    to: {{endpoint: b, template: q}}
""")
    found = load(file).broker_selector("a")

    assert found == ("x = 1" if known in {"artemis", "solace"} else "")


def _message(name: str) -> Message:
    return Message(name, b"1", Headers(mode=DeliveryMode.AT_LEAST_ONCE))


def _settings(port: int) -> AmqpSettings:
    url = f"amqp://guest:guest@127.0.0.1:{port}/"
    return replace(AmqpSettings(known="artemis"), url=url, answer_timeout=10.0)


def test_a_text_of_a_server_is_shown_up_to_a_limit() -> None:
    assert len(shown("amqp:internal-error", "x" * 60_000)) < 1_100
