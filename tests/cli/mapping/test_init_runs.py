"""A mapping of `gateway init` runs as it is: a message crosses between two fresh brokers.

What `init` says that the target needs is done before, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import find_kind, make_sink, make_source, starters
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.activemq import QUICK_JAVA, client_jars
from gateway.trial.brokers.smf import SmfBroker
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.brokers.controlled_activemq import ActiveMq, running
from tests.brokers.kafka_server import StartKafka
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.running import Process
from tests.endpoints.exchange import collect, opened, send

PATTERNS = {  # of all names below "orders", at each system
    "mqtt": "orders/#",
    "activemq": "orders.>",
    "solace": "orders/>",
    "yami4": "orders.*",
    "nats": "orders.>",
    "rabbitmq": "orders.#",
    "amqp": "orders.#",
    "kafka": "orders:>",
}
OTHER_READERS: Mapping[str, Mapping[str, object]] = {  # settings of one more reader
    "nats": {"consumer": "application", "create_stream": False},  # only what the stream has
    "rabbitmq": {"queue": "application"},
    "amqp": {"queue": "application"},
    "kafka": {"group_id": "application", "client_id": "application"},
}
EACH_ONCE = dict(zip(PATTERNS, [*[*PATTERNS][1:], "mqtt"], strict=True))
PAIRS = [
    pytest.param(
        source, target, id=f"{source}-{target}",
        marks=[] if EACH_ONCE[source] == target else [pytest.mark.nightly],
    )
    for source, target in product(PATTERNS, repeat=2)
]  # fmt: skip


NO_SERVER = {"ems", "ibm"}  # the starters of `init` whose servers only their vendors have


def test_every_starter_has_a_server_here_or_none_anywhere() -> None:
    assert {*PATTERNS} == {*starters()} - NO_SERVER


@dataclass
class Brokers:
    """Fresh brokers of one test, by system. Mutable: `swaps` has texts of the written file."""

    request: pytest.FixtureRequest
    stack: ExitStack
    folder: Path
    swaps: dict[str, str] = field(default_factory=dict)

    def start(self, system: str, side: str) -> str:
        """Start a broker and return its address as HOST:PORT."""
        return str(getattr(self, f"_{system}")(side))

    def _mqtt(self, _: str) -> str:
        return f"127.0.0.1:{self.request.getfixturevalue('start_mosquitto')().port}"

    def _activemq(self, side: str) -> str:
        broker: ActiveMq = self.request.getfixturevalue("activemq")
        if side == "target":
            data = self.folder / "activemq"
            data.mkdir()
            broker = self.stack.enter_context(running(data, QUICK_JAVA))
        jars = self.folder / "jars"
        if not jars.exists():
            jars.mkdir()
            for jar in client_jars():
                (jars / Path(jar).name).symlink_to(jar)
        return broker.url.removeprefix("tcp://")

    def _solace(self, _: str) -> str:
        pytest.importorskip("solace.messaging", reason="the Solace library is not installed")
        return self.stack.enter_context(SmfBroker()).url.removeprefix("tcp://")

    def _yami4(self, _: str) -> str:
        return self.stack.enter_context(Yami4Broker()).url.removeprefix("tcp://")

    def _nats(self, side: str) -> str:
        server = self.request.getfixturevalue("start_nats")
        folder = self.folder / f"nats-{side}"
        folder.mkdir()
        return str(server().url).removeprefix("nats://")

    def _kafka(self, _: str) -> str:
        server: StartKafka = self.request.getfixturevalue("start_kafka")
        return server().url

    def _amqp(self, side: str) -> str:
        return self._rabbitmq(side, "rabbitmq_4")

    def _rabbitmq(self, side: str, server: str = "rabbitmq") -> str:
        vhost: Vhost = self.request.getfixturevalue(server)
        name = vhost.name
        if side == "target":  # a broker of its own: no vhost shares a name with another
            name = f"{name}-target"
            vhost.server.api("PUT", f"vhosts/{name}")
            self.stack.callback(vhost.server.api, "DELETE", f"vhosts/{name}")
        address = vhost.server.url.removeprefix("amqp://").rstrip("/").rpartition("@")[2]
        alias = f"localhost:{address.rpartition(':')[2]}"
        host = alias if side == "target" else address  # so that each is replaced by its own
        self.swaps[f"amqp://{host}/"] = f"{vhost.server.url}{name}"
        return host


@pytest.mark.broker
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_message_crosses(
    source: str, target: str, tmp_path: Path, request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("ACTIVEMQ_CLASSPATH", f"{tmp_path}/jars/*.jar")
    file = tmp_path / "gateway.yaml"
    with ExitStack() as stack:
        brokers = Brokers(request, stack, tmp_path)
        ends = [f"--from-address={brokers.start(source, 'source')}",
                f"--to-address={brokers.start(target, 'target')}"]  # fmt: skip
        assert main(["init", str(file), "--from", source, "--to", target,
                     "--names", "orders", *ends]) == 0  # fmt: skip
        needs = "bind a queue to amq.topic with the key orders." in capsys.readouterr().out
        assert needs is (target in {"rabbitmq", "amqp"})
        text = file.read_text()
        for old, new in {"web: {}": "web: {port: 0}", **brokers.swaps}.items():
            text = text.replace(old, new)
        file.write_text(text)
        bound = _reader(file, target) if needs else None
        if bound is not None:
            stack.enter_context(opened(bound))
        process = Process(file)
        try:
            process.connected()
            assert main(["connect", str(file)]) == 0, capsys.readouterr()
            arrived = _cross(file, source, target, bound)
        finally:
            assert process.end() == 0, process.lines

    assert [(each.address, _text(each)) for each in arrived] == [(_name(target), "one")]
    assert not [each for each in process.lines if "dead letter" in str(each["message"])]


def _reader(file: Path, system: str) -> Source:
    """Return an application that reads at the target."""
    settings: Any = load(file).endpoints["target"].settings
    reader = replace(settings, **OTHER_READERS.get(system, find_kind(settings).observer or {}))
    return make_source(reader, [Subscription(PATTERNS[system])], instance="application")


def _cross(file: Path, source: str, target: str, bound: Source | None) -> list[Message]:
    """Publish a message at the source, and return what arrives at the target."""
    settings: Any = load(file).endpoints["source"].settings
    if source == "kafka":  # the application has made its topic
        settings = replace(settings, create_topics=True)
    reader, sink = bound or _reader(file, target), make_sink(settings, instance="application")
    with opened(sink, *([] if bound else [reader])):
        message = Message(_name(source), b"one", Headers(mode=settings.mode))
        assert send(sink, message) == [ACCEPTED]
        return collect(reader, 1)


def _name(system: str) -> str:
    """Return a name that the pattern selects."""
    return f"{PATTERNS[system][:-1]}1"


def _text(message: Message) -> str:
    payload = message.payload
    return payload.decode() if isinstance(payload, bytes) else str(payload)
