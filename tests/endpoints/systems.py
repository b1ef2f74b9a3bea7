"""The systems of the conformance suite; a new endpoint adds a function and a line."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import count
from typing import Any, Protocol

import pytest

from gateway.endpoints.amqp import intake as amqp_intake
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.continuity import ReportsContinuity, Retention
from gateway.endpoints.mqtt import kept_session
from gateway.endpoints.registry import find_kind, make_sink, make_source
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings, WebSocketSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.source_memory import KeepsMemory
from gateway.model.message import DeliveryMode
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.smf.responses import PUBLISH_DENIED
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from tests.brokers.nats_server import StartNats
from tests.brokers.rabbitmq_server import Vhost
from tests.endpoints.exchange import opened
from tests.endpoints.freezing import freeze
from tests.endpoints.nats.stream import ask
from tests.waiting import PATIENCE

_numbers = count()


class Broker(Protocol):
    """A broker that a test ends, brings back and holds up."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """End it in good order."""

    def kill(self) -> None:
        """End it at once; it may lose what it keeps in memory."""

    def freeze(self) -> None:
        """Hold it up; its connections stay open and silent, and new ones get no answer."""

    def thaw(self) -> None:
        """Let it go on, if it is frozen."""


@dataclass(frozen=True)
class System:
    """One kind of endpoint with a broker of its own.

    `broker` is None where there is none to end. `spell` joins levels; `rest` is a pattern for all
    below some levels.
    `set_aside` has the broker set aside what the source "one" rejects, and returns a source of that
    place; None where brokers of the kind set nothing aside, or where no client may read it.
    `retains`: each message is published as a retained one, which may come with a subscription.
    `in_order`: the broker delivers what was on its way to a lost connection before anything newer.
    `refused` is an address that the broker lets nobody publish to; empty where it has none, or ends
    the connection.
    `queues_readers`: a second reader of a place waits, or takes turns, and ends no connection.
    `has_facts`: its sources keep facts in their memories.
    `removals` are by what they remove at the broker of the source "one", as an administrator does.
    `knows_settled` tells whether all settlements of the source "one" have reached the broker, where
    a driver collects them. `longest` is the setting that limits received messages, with a low
    value, or why a longer one cannot come without its payload. `forget` ends what the kind keeps
    beyond a source for as long as its process lives. Within `dying` a driver sends nothing over
    connections that it makes again by itself. An endpoint `closes` within so many seconds, whatever
    its broker does.
    """

    settings: EndpointSettings
    spell: Callable[[tuple[str, ...]], str]
    rest: Callable[[tuple[str, ...]], str]
    illegal: str  # an address that no message can have
    mode: DeliveryMode = DeliveryMode.AT_LEAST_ONCE
    retained: bool = False
    retains: bool = False
    broker: Broker | None = None
    keeps_killed: bool = True
    wipe: Callable[[], None] | None = None
    set_aside: Callable[[], Source] | None = None
    refused: str = ""
    in_order: bool = True
    queues_readers: bool = False
    has_facts: bool = True
    removals: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    knows_settled: Callable[[], bool] = lambda: True
    longest: tuple[str, int] | str = "its settings have no limit of received messages"
    forget: Callable[[], None] = lambda: None
    dying: Callable[[], AbstractContextManager[None]] = nullcontext
    closes: float = 8.0

    @property
    def keeps(self) -> bool:
        """Whether its brokers keep messages for a source that is away."""
        source = self.source("t")
        if isinstance(source, ReportsContinuity):
            return source.continuity.retention is Retention.KEPT
        return True

    @property
    def remembers(self) -> bool:
        """Whether its sources have a memory, and facts in it."""
        return self.has_facts and isinstance(self.source("t"), KeepsMemory)

    @property
    def respelled(self) -> EndpointSettings:
        """The settings with another spelling of the address; the same ones without an address."""
        texts = {
            each.name: _respelled(getattr(self.settings, each.name))
            for each in fields(self.settings)
            if each.init
        }
        return replace(self.settings, **texts)

    @property
    def outlives(self) -> bool:
        """Whether the broker is still there after the end of the process that reads it."""
        return not find_kind(self.settings).in_process

    def address(self, *levels: str) -> str:
        return self.spell(levels)

    def source(self, *levels: str, instance: str = "one", exclude_retained: bool = False) -> Source:
        """Return a source of every address below `levels`."""
        subscription = Subscription(self.rest(levels), exclude_retained=exclude_retained)
        return make_source(self.settings, [subscription], instance=instance)

    def sink(self, instance: str = "one") -> Sink:
        return make_sink(self.settings, instance=instance)


def _respelled(value: object) -> Any:  # noqa: ANN401  # of any setting
    if isinstance(value, tuple):
        return tuple(map(_respelled, value))
    return value.replace("127.0.0.1", "localhost") if isinstance(value, str) else value


def _slashes(levels: tuple[str, ...]) -> str:
    return "/".join(levels)


def _below(levels: tuple[str, ...]) -> str:
    return "/".join((*levels, "#"))


def _session_removal(settings: MqttSettings) -> Mapping[str, Callable[[], None]]:
    """Another client with the id of the source makes a new session, and leaves none."""

    def remove() -> None:
        short = replace(settings, session_expiry=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kept_session, "_sessions", {})  # it is of another process
            with opened(make_source(short, [Subscription("none")], instance="one")):
                pass

    return {"session": remove}


def _memory(_request: pytest.FixtureRequest) -> System:
    return System(
        MemorySettings(name="memory", broker=f"conformance-{next(_numbers)}"),
        spell=_slashes,
        rest=_below,
        illegal="a/+/b",
        retained=True,
        longest="a message in memory is whole before it is received",
    )


def _mqtt(request: pytest.FixtureRequest) -> System:
    broker = request.getfixturevalue("mosquitto")
    settings = MqttSettings(name="mqtt", host="127.0.0.1", port=broker.port)
    return System(
        settings,
        removals=_session_removal(settings),
        spell=_slashes,
        rest=_below,
        illegal="a/+/b",
        retained=True,
        broker=broker,
        keeps_killed=False,
        wipe=broker.wipe,
        longest="a broker of 5.0 drops it: it knows the Maximum Packet Size",
        forget=kept_session._sessions.clear,  # noqa: SLF001  # as a process ends
    )


def _mqtt_3(request: pytest.FixtureRequest) -> System:
    system = _mqtt(request)
    assert isinstance(system.settings, MqttSettings)
    settings = replace(system.settings, version="3.1.1")
    return replace(
        system,
        settings=settings,
        removals=_session_removal(settings),
        longest=("max_packet_in", 4 << 20),
    )


def _mqtt_retained(request: pytest.FixtureRequest) -> System:
    return replace(_mqtt_3(request), retains=True)


def _mqtt_5_retained(request: pytest.FixtureRequest) -> System:
    return replace(_mqtt(request), retains=True)


def _mqtt_over_websocket(request: pytest.FixtureRequest) -> System:
    broker = request.getfixturevalue("start_mosquitto")(websocket=free_port())
    settings = MqttSettings(
        name="mqtt", host="127.0.0.1", port=broker.websocket, websocket=WebSocketSettings()
    )
    return System(
        settings,
        removals=_session_removal(settings),
        spell=_slashes,
        rest=_below,
        illegal="a/+/b",
        retained=True,
        broker=broker,
        keeps_killed=False,
        wipe=broker.wipe,
        longest="a broker of 5.0 drops it: it knows the Maximum Packet Size",
        forget=kept_session._sessions.clear,  # noqa: SLF001  # as a process ends
    )


def _mqtt_of_nats(request: pytest.FixtureRequest) -> System:
    """The MQTT listener of nats-server, with names that it takes."""
    start: StartNats = request.getfixturevalue("start_nats")
    port = free_port()
    server = start(
        "server_name: mqtt",  # by default, what was not acknowledged comes again after 30 s
        f'mqtt {{listen: "127.0.0.1:{port}", max_ack_pending: 10000, ack_wait: "2s"}}',
        'lame_duck_grace_period: "1ms"',
    )
    # after SIGTERM, 2.9 ends its consumers before its clients, and loses what it acknowledges then
    server.orderly = signal.SIGUSR2
    return System(
        MqttSettings(name="mqtt", host="127.0.0.1", port=port, version="3.1.1"),
        spell=lambda levels: "/".join(levels).replace(" ", "_"),
        rest=_below,
        illegal="a/+/b",
        retained=True,
        broker=server,
        wipe=server.wipe,
        longest="nats-server takes no message as long as the lowest `max_packet_in`",
        in_order=False,
        forget=kept_session._sessions.clear,  # noqa: SLF001  # as a process ends
    )


class _Yami4Brokers:
    """The broker of a test and its replacements. Mutable."""

    def __init__(self) -> None:
        self.url = "tcp://127.0.0.1:0"
        self._broker: Yami4Broker | None = None
        self.thaw: Callable[[], None] = lambda: None

    def start(self) -> None:
        broker = Yami4Broker(self.url, Yami4BrokerOptions(max_client_queue=100_000))
        broker.__enter__()
        self.url, self._broker = broker.url, broker

    def stop(self) -> None:
        broker, self._broker = self._broker, None
        self.thaw()
        if broker is not None:
            broker.__exit__(None, None, None)

    kill = stop  # it writes nothing to a disk

    def wipe(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        assert self._broker is not None
        self.thaw = freeze(self._broker)


def _yami4(request: pytest.FixtureRequest) -> System:
    brokers = _Yami4Brokers()
    brokers.start()
    request.addfinalizer(brokers.stop)
    return System(
        Yami4Settings(name="yami4", url=brokers.url),
        spell=".".join,
        rest=lambda levels: ".".join((*levels, "*")),
        illegal="a\0b",
        broker=brokers,
        wipe=brokers.wipe,
        longest=("max_message", 4_096),
    )


def _jms(request: pytest.FixtureRequest) -> System:
    broker = request.getfixturevalue("activemq")
    name = f"conformance-{next(_numbers)}"
    settings = broker.settings(client_id=name, durable="gateway")
    return System(
        settings,
        removals={"subscription": partial(_unsubscribe, settings)},
        spell=lambda levels: ".".join((name, *levels)),
        rest=lambda levels: ".".join((name, *levels, ">")),
        illegal="a.*.b",
        broker=broker,
        wipe=broker.wipe,
        longest="the library in Java has a message whole before it gives its size",
        set_aside=lambda: make_source(
            broker.settings(), [Subscription("queue:ActiveMQ.DLQ")], instance="dead"
        ),
    )


def _unsubscribe(settings: JmsSettings) -> None:
    """Delete the durable subscription of the source "one", which is away."""
    from gateway.endpoints.jms import jvm  # noqa: PLC0415  # the fixture skips without it
    from gateway.endpoints.jms.connection import connect  # noqa: PLC0415  # as above

    connection = connect(settings, jvm.open_library(settings), f"{settings.client_id}-one")
    connection.connection.createSession(False, 1).unsubscribe(jvm.text(settings.durable))
    connection.close(PATIENCE)


def _destroy(settings: JmsSettings, queue: str) -> None:
    """Delete a queue with what waits in it; its next reader makes it again."""
    from gateway.endpoints.jms import jvm  # noqa: PLC0415  # the fixture skips without it
    from gateway.endpoints.jms.connection import connect  # noqa: PLC0415  # as above

    connection = connect(settings, jvm.open_library(settings), "")
    session = connection.connection.createSession(False, 1)
    connection.connection.destroyDestination(session.createQueue(queue))
    connection.close(PATIENCE)


def _jms_queue(request: pytest.FixtureRequest) -> System:
    broker = request.getfixturevalue("activemq")
    name = f"conformance-{next(_numbers)}"
    settings = broker.settings()
    return System(
        settings,
        removals={"messages": partial(_destroy, settings, name)},
        spell=lambda _levels: f"queue:{name}",  # no wildcard selects queues
        rest=lambda _levels: f"queue:{name}",
        illegal="queue:a.*.b",
        broker=broker,
        queues_readers=True,
    )


def _solace(request: pytest.FixtureRequest) -> System:
    from tests.endpoints.solace.restartable import RestartableBroker, wait_less  # noqa: PLC0415  # skips without it

    wait_less(request.getfixturevalue("monkeypatch"))
    broker = RestartableBroker()
    broker.broker.faults.publish["t/refused"] = PUBLISH_DENIED
    request.addfinalizer(broker.stop)
    return System(
        broker.settings,
        spell=_slashes,
        rest=lambda levels: "/".join((*levels, ">")),
        illegal="x" * 251,
        broker=broker,
        wipe=broker.wipe,
        refused="t/refused",
        longest="the vendor's library has a message whole before it gives its size",
        queues_readers=True,
        removals={"queue": lambda: broker.broker.remove_queue(broker.queue)},
        knows_settled=lambda: not broker.depth(),
    )


def _solace_no_queue(request: pytest.FixtureRequest) -> System:
    system = _solace(request)
    settings = replace(system.settings, guaranteed=False)  # type: ignore[call-arg]  # its kind has it
    return replace(system, settings=settings, refused="", removals={}, queues_readers=False)


def _nats(request: pytest.FixtureRequest) -> System:
    server = request.getfixturevalue("start_nats")(
        "accounts {plant: {jetstream: enabled, users: [{user: all, password: all, permissions: {"
        'publish: {deny: ["t.refused"]}}}]}}',
        "no_auth_user: all",
    )
    core = NatsSettings(name="nats", url=server.url, jetstream=False)
    terminated = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>"  # of which archives are made
    settings = NatsSettings(
        name="nats", url=server.url, stream="T", create_stream=True, subjects=("t.>",)
    )

    def remove_consumer() -> None:
        ask(settings, lambda jetstream: jetstream.delete_consumer("T", "gateway-nats-one"))

    def purge() -> None:
        ask(settings, lambda jetstream: jetstream.purge_stream("T"))

    def remove_stream() -> None:
        ask(settings, lambda jetstream: jetstream.delete_stream("T"))

    return System(
        settings,
        refused="t.refused",
        longest=("max_message_in", 1_000),
        removals={"consumer": remove_consumer, "stream": remove_stream, "messages": purge},
        spell=lambda levels: ".".join(levels).replace(" ", "%20"),  # as names are translated
        rest=lambda levels: ".".join((*levels, ">")),
        illegal="a.*.b",
        broker=server,
        wipe=server.wipe,
        set_aside=lambda: make_source(core, [Subscription(terminated)]),
        queues_readers=True,
    )


def _nats_core(request: pytest.FixtureRequest) -> System:
    system = _nats(request)
    assert isinstance(system.settings, NatsSettings)
    core = replace(system.settings, jetstream=False, stream="", create_stream=False, subjects=())
    return replace(system, settings=core, set_aside=None, queues_readers=False, removals={})


def _restrict(vhost: Vhost) -> None:
    """Make the exchange, where nobody may publish to one key."""
    # 4.3 gives no rights without it
    vhost.api("PUT", "exchanges", "/plant", {"type": "topic", "durable": True})
    rights = {"exchange": "plant", "write": "^(?!t[.]refused$)", "read": ".*"}
    vhost.server.api("PUT", f"topic-permissions/{vhost.name}/guest", rights)


def _replace(vhost: Vhost) -> None:
    vhost.replace()
    _restrict(vhost)


def _rabbitmq(request: pytest.FixtureRequest) -> System:
    vhost = request.getfixturevalue("rabbitmq")
    from gateway.endpoints.rabbitmq import intake  # noqa: PLC0415  # the fixture skips without it

    def set_aside() -> Source:
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        for name, wanted in (("dead", {}), ("gateway-one", arguments)):
            body = {"durable": True, "arguments": wanted}
            vhost.api("PUT", "queues", f"/{name}", body)
        return make_source(vhost.settings, [Subscription("queue:dead")])

    def remove_binding() -> None:
        vhost.api("DELETE", "bindings", "/e/plant/q/gateway-one/t.%23")

    _restrict(vhost)
    request.getfixturevalue("monkeypatch").setattr(intake, "BIND_INTERVAL", 0.2)
    return System(
        replace(
            vhost.settings,
            queue="gateway",
            exchange="plant",
            create_exchange=True,
            on_unroutable="drop",
        ),
        refused="t.refused",
        longest=("max_message_in", 1_000),
        removals={
            "queue": lambda: vhost.delete_queue("gateway-one"),
            "exchange": lambda: vhost.api("DELETE", "exchanges", "/plant"),
            "binding": remove_binding,
            "messages": lambda: vhost.api("DELETE", "queues", "/gateway-one/contents"),
        },
        spell=".".join,
        rest=lambda levels: ".".join((*levels, "#")),
        illegal="a.*.b",
        broker=vhost.server,
        wipe=partial(_replace, vhost),
        set_aside=set_aside,
        queues_readers=True,
    )


def _amqp(request: pytest.FixtureRequest) -> System:
    """RabbitMQ 4 by AMQP 1.0."""
    vhost = request.getfixturevalue("rabbitmq_4")
    settings = AmqpSettings(
        url=vhost.url, backoff_min=0.05, queue="gateway", exchange="plant", create_exchange=True,
        on_unroutable="drop",
    )  # fmt: skip

    def set_aside() -> Source:
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        for name, wanted in (("dead", {}), ("gateway-one", arguments)):
            body = {"durable": True, "arguments": wanted}
            vhost.api("PUT", "queues", f"/{name}", body)
        return make_source(settings, [Subscription("queue:dead")])

    _restrict(vhost)
    request.getfixturevalue("monkeypatch").setattr(amqp_intake, "BIND_INTERVAL", 0.2)
    return System(
        settings,
        refused="t.refused",
        longest=("max_message_in", 1_000),
        removals={
            "queue": lambda: vhost.delete_queue("gateway-one"),
            "exchange": lambda: vhost.api("DELETE", "exchanges", "/plant"),
            "binding": lambda: vhost.api("DELETE", "bindings", "/e/plant/q/gateway-one/t.%23"),
            "messages": lambda: vhost.api("DELETE", "queues", "/gateway-one/contents"),
        },
        spell=".".join,
        rest=lambda levels: ".".join((*levels, "#")),
        illegal="a.*.b",
        broker=vhost.server,
        wipe=partial(_replace, vhost),
        set_aside=set_aside,
        queues_readers=True,
    )


def _amqp_quorum(request: pytest.FixtureRequest) -> System:
    system = _amqp(request)
    assert isinstance(system.settings, AmqpSettings)
    # it puts what is returned again behind the rest of what was returned (measured with 4.0.5)
    quorum = replace(system.settings, queue_type="quorum")
    return replace(system, settings=quorum, in_order=False)


def _rabbitmq_stream(request: pytest.FixtureRequest) -> System:
    system = _rabbitmq(request)
    assert isinstance(system.settings, RabbitmqSettings)
    stream = replace(system.settings, queue_type="stream")
    removals = {key: each for key, each in system.removals.items() if key != "messages"}
    return replace(system, settings=stream, removals=removals, set_aside=None, queues_readers=False)


def _kafka(request: pytest.FixtureRequest, partitions: int = 1) -> System:
    server = request.getfixturevalue("kafka_server")
    from gateway.endpoints.kafka import intake  # noqa: PLC0415  # the fixture skips without it
    from gateway.endpoints.kafka.commits import Commits  # noqa: PLC0415  # as above

    patch = request.getfixturevalue("monkeypatch")
    patch.setattr(intake, "REFRESH", 0.2)
    patch.setattr(intake, "HEARTBEAT", 0.2)  # noida-db waits half a second for it
    server.make_topic("t", partitions, max_message_bytes=2 << 20)

    def remove_topic() -> None:
        server.delete_topic("t")
        server.make_topic("t", partitions, max_message_bytes=2 << 20)

    def wipe() -> None:
        server.wipe()
        server.make_topic("t", partitions, max_message_bytes=2 << 20)

    @contextmanager
    def dying() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Commits, "finish", lambda *_: None)
            patch.setattr(Commits, "ask", lambda *_: None)
            yield

    return System(
        replace(server.settings, max_message=2 << 20, backoff_min=0.05, connect_timeout=2),
        removals={"topic": remove_topic},
        spell=lambda levels: f"{levels[0]}:{'.'.join(levels[1:])}",
        rest=lambda levels: levels[0],
        illegal="a b:c",
        broker=server,
        keeps_killed=False,
        wipe=wipe,
        longest=("max_message_in", 1_000),
        dying=dying,
        closes=2 * intake.CLOSE,  # its last commit has half of that
    )


def _kafka_partitions(request: pytest.FixtureRequest) -> System:
    return _kafka(request, 3)


def _mqtt_of_rabbitmq(request: pytest.FixtureRequest) -> System:
    """The MQTT plugin of RabbitMQ: no subscription with a wildcard gets retained messages."""
    vhost = request.getfixturevalue("rabbitmq_of_mqtt")
    return System(
        MqttSettings(
            name="mqtt",
            host="127.0.0.1",
            port=vhost.server.mqtt_port,
            version="3.1.1",
            username=f"{vhost.name}:guest",
            password="guest",  # noqa: S106  # of every new server
            client_id=f"conformance-{next(_numbers)}",
        ),
        spell=_slashes,
        rest=_below,
        illegal="a/+/b",
        broker=vhost.server,
        wipe=vhost.replace,
        longest=("max_packet_in", 4 << 20),
        forget=kept_session._sessions.clear,  # noqa: SLF001  # as a process ends
    )


def _web_mqtt_of_rabbitmq(request: pytest.FixtureRequest) -> System:
    system = _mqtt_of_rabbitmq(request)
    vhost = request.getfixturevalue("rabbitmq_of_mqtt")
    websocket = WebSocketSettings(path="/ws")
    assert isinstance(system.settings, MqttSettings)
    settings = replace(system.settings, port=vhost.server.web_mqtt_port, websocket=websocket)
    return replace(system, settings=settings)


SYSTEMS: dict[str, Callable[[pytest.FixtureRequest], System]] = {
    "memory": _memory,
    "mqtt-3.1.1": _mqtt_3,
    "mqtt-5": _mqtt,
    "mqtt-websocket": _mqtt_over_websocket,
    "mqtt-nats": _mqtt_of_nats,
    "yami4": _yami4,
    "jms": _jms,
    "solace": _solace,
    "nats": _nats,
    "rabbitmq": _rabbitmq,
    "amqp": _amqp,
    "kafka": _kafka,
    "mqtt-rabbitmq": _mqtt_of_rabbitmq,
    "mqtt-web-rabbitmq": _web_mqtt_of_rabbitmq,
}
# Further places of these kinds, for what happens to a source.
PLACES: dict[str, Callable[[pytest.FixtureRequest], System]] = {
    "mqtt-3.1.1-retained": _mqtt_retained,
    "mqtt-5-retained": _mqtt_5_retained,
    "jms-queue": _jms_queue,
    "solace-no-queue": _solace_no_queue,
    "nats-core": _nats_core,
    "rabbitmq-stream": _rabbitmq_stream,
    "amqp-quorum": _amqp_quorum,
    "kafka-partitions": _kafka_partitions,
}
# Their mechanisms have rows of other systems, or tests with brokers, in each run.
NIGHTLY = frozenset(
    {"mqtt-rabbitmq", "mqtt-web-rabbitmq", "mqtt-websocket", "mqtt-5-retained", "solace-no-queue"}
)
