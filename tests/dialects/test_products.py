"""Each word that a user would try for a system leads to what to write, wherever it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.dialects.brokers import BROKERS
from gateway.dialects.registry import DIALECTS, UnknownSystemError, find_dialect
from gateway.endpoints.registry import ENDPOINT_KINDS, starters
from gateway.endpoints.settings.amqp import KNOWN
from gateway.errors import ConfigErrors

PRODUCTS = [
    "solace", "ems", "activemq", "artemis", "ibm-mq", "IBM MQ", "amqp", "rabbitmq", "mosquitto",
    "tibco", "Tibco EMS", "hivemq", "emqx", "redpanda", "jetstream", "rendezvous", "tibrv",
    "amqp-1.0", "azure-service-bus", "MQTT", "WebSphere MQ", "smartsockets", "smf",
]  # fmt: skip
MEANT = ("did you mean ", "over AMQP 1.0 ", "a memory endpoint ", "its messages come through EMS")
WORDS = sorted({*PRODUCTS, *DIALECTS, *ENDPOINT_KINDS, *starters(), *KNOWN, *BROKERS})


@pytest.mark.parametrize("word", WORDS)
def test_each_word_leads_to_a_dialect_or_to_a_sentence(word: str) -> None:
    try:
        find_dialect(word)
    except UnknownSystemError as error:
        assert error.hint.startswith(MEANT)  # noqa: PT017


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("solace", "did you mean 'smf'?"),
        ("activemq", "did you mean 'ems'?"),
        ("artemis", "did you mean 'rabbitmq'?"),
        ("IBM-MQ", "did you mean 'ibm'?"),
        ("mosquitto", "did you mean 'mqtt'?"),
        ("amqp", "over AMQP 1.0 the names are those of the server: rabbitmq for RabbitMQ and"),
        ("memory", "a memory endpoint has the dialect in its file, mqtt without one"),
    ],
)
def test_translate_says_what_to_write(
    capsys: pytest.CaptureFixture[str], word: str, hint: str
) -> None:
    assert main(["translate", "a/b", "--from", "mqtt", "--to", word]) == 2
    assert f"unknown system {word!r}; {hint}" in capsys.readouterr().err


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("key", ["kind", "dialect"])
def test_a_file_with_the_word_says_what_to_write(tmp_path: Path, key: str, word: str) -> None:
    """A word that is legal there has findings about the rest of the endpoint only."""
    kind = "" if key == "kind" else "kind: memory, "
    (tmp_path / "gateway.yaml").write_text(
        f'endpoints: {{a: {{{kind}{key}: "{word}"}}}}\n'
        "routes: {r: {from: {endpoint: a, pattern: a}, to: {endpoint: a, template: b}}}\n"
    )
    try:
        load(tmp_path / "gateway.yaml")
    except ConfigErrors as errors:
        hints = [each.hint for each in errors.findings if each.reason.startswith("unknown")]
        assert not any(hint.startswith("known: ") or not hint for hint in hints)


@pytest.mark.parametrize(
    ("word", "choice"),
    [("artemis", "amqp"), ("smf", "solace"), ("tibco", "ems"), ("ibm-mq", "ibm"), ("jms", "ems")],
)
def test_init_says_which_choice_is_meant(
    capsys: pytest.CaptureFixture[str], word: str, choice: str
) -> None:
    with pytest.raises(SystemExit):
        main(["init", "--from", word, "--to", "mqtt", "new.yaml"])

    assert f"{word!r} is no choice; did you mean {choice!r}?" in capsys.readouterr().err
