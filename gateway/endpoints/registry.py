"""The kinds of endpoint, one row each.

A package is imported when its first source or sink is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, cast

from gateway.endpoints.base import Removes, Sink, Source, Subscription
from gateway.endpoints.kind import EndpointKind, Starter
from gateway.endpoints.made import Held, Made
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import DriverMissingError, EndpointError, first_line
from gateway.extras import not_installed
from gateway.registry import GATEWAY, Registry
from gateway.setting import fields_by_key

_REFERENCE: Final = "# password: ${{env:{variable}_PASSWORD}}  # a secret is always a reference\n"
_LOG_IN: Final = "# username: gateway\n" + _REFERENCE
_KEPT: Final = """\
client_id: {gateway}-{name}
durable: "{gateway}-{{pattern}}"  # the server keeps messages while the gateway is away
"""

_ROWS: Final = (
    EndpointKind(
        "mqtt",
        MqttSettings,
        "gateway.endpoints.mqtt",
        typed_properties=False,
        leaves_will=True,
        retains=True,
        drops_setting="dropped_topic",
        session_setting="session_expiry",
        origin_remedy="use MQTT 5 there when other bridges join the same brokers",
        makes="session",
        observer={"session_expiry": 0},
        starters={
            "mqtt": Starter(
                "mqtt",
                1883,
                'host: "{host}"\nport: {port}\n'
                + _LOG_IN
                + "# tls: {{ca_file: ca.pem}}  # a path is relative to this file\n",
            ),
        },
    ),
    EndpointKind(
        "jms",
        JmsSettings,
        "gateway.endpoints.jms",
        extra="jms",
        gives_identity=True,
        payload_encoding="the JMS library encodes texts and maps",
        makes="durable subscription",
        observer={"durable": "", "shared": ""},
        starters={
            "ems": Starter(
                "ems",
                7222,
                'dialect: ems\nurls: ["tcp://{address}"]\n'
                "# the jar files of the client, such as /opt/tibco/ems/10.2/lib/*.jar\n"
                'classpath: ["${{env:EMS_CLASSPATH}}"]\n' + _KEPT + _LOG_IN,
            ),
            "activemq": Starter(
                "ems",
                61616,
                'dialect: ems  # its names have dots, too\nurls: ["tcp://{address}"]\n'
                "factory: org.apache.activemq.ActiveMQConnectionFactory\n"
                "# the jar file of the client, such as /opt/activemq/activemq-all-5.17.2.jar\n"
                'classpath: ["${{env:ACTIVEMQ_CLASSPATH}}"]\n' + _KEPT + _LOG_IN,
            ),
            "ibm": Starter(
                "ibm",
                1414,
                'dialect: ibm\nurls: ["mq://{address}"]  # `properties` has the address\n'
                "factory: com.ibm.mq.jms.MQConnectionFactory\n"
                'properties: ["hostName={host}", port={port}, queueManager=QM1,'
                " channel=GATEWAY.SVRCONN, transportType=1]\n"
                "# the jar files of the client, such as /opt/mqm/java/lib/*.jar\n"
                'classpath: ["${{env:MQ_CLASSPATH}}"]\n' + _KEPT + _LOG_IN,
            ),
        },
    ),
    EndpointKind(
        "solace",
        SolaceSettings,
        "gateway.endpoints.solace",
        extra="solace",
        gives_identity=True,
        payload_encoding="the Solace library encodes texts and maps (SDT)",
        makes="queue",
        observer={"guaranteed": False, "share": ""},
        starters={
            "solace": Starter(
                "smf",
                55555,
                'url: "tcp://{address}"  # tcps:// with TLS\nvpn: default\nusername: gateway\n'
                + _REFERENCE,
            ),
        },
    ),
    EndpointKind(
        "yami4",
        Yami4Settings,
        "gateway.endpoints.yami4",
        payload_encoding="a YAMI4 message encodes every payload as parameters",
        observer={"overflow_policy": "drop_update"},
        starters={"yami4": Starter("yami4", 12345, 'url: "tcp://{address}"  # tcps:// with TLS\n')},
    ),
    EndpointKind(
        "nats",
        NatsSettings,
        "gateway.endpoints.nats",
        extra="nats",
        typed_properties=False,
        gives_identity=True,
        makes="consumer",
        observer={"jetstream": False, "queue_group": ""},
        starters={
            "nats": Starter(
                "nats",
                4222,
                'url: "nats://{address}"  # tls:// with TLS\n'
                "stream: {route}\ncreate_stream: true  # where it is absent, with these subjects\n"
                "subjects: {patterns}\n" + _LOG_IN,
            ),
        },
    ),
    EndpointKind(
        "rabbitmq",
        RabbitmqSettings,
        "gateway.endpoints.rabbitmq",
        extra="rabbitmq",
        makes="queue",
        starters={
            "rabbitmq": Starter(
                "rabbitmq",
                5672,
                'url: "amqp://{address}/"  # amqps:// with TLS; /NAME for another vhost\n'
                "exchange: amq.topic\n# queue_type: quorum\n" + _LOG_IN,
                target="# Bind a queue to this exchange with the key {keys}: without a queue a\n"
                "# message becomes a dead letter `unroutable`.\n",
                needs="bind a queue to amq.topic with the key {keys} at {address}",
            ),
        },
    ),
    EndpointKind(
        "amqp",
        AmqpSettings,
        "gateway.endpoints.amqp",
        makes="queue",
        starters={
            "amqp": Starter(
                "rabbitmq",
                5672,
                'url: "amqp://{address}/"  # amqps:// with TLS; /NAME for another vhost\n'
                "exchange: amq.topic  # the server is RabbitMQ 4\n# queue_type: quorum\n" + _LOG_IN,
                target="# Bind a queue to this exchange with the key {keys}: without a queue a\n"
                "# message becomes a dead letter `unroutable`.\n",
                needs="bind a queue to amq.topic with the key {keys} at {address}",
            ),
        },
    ),
    EndpointKind(
        "kafka",
        KafkaSettings,
        "gateway.endpoints.kafka",
        extra="kafka",
        gives_identity=True,
        carries_name=True,
        has_partitions=True,
        makes="group",
        starters={
            "kafka": Starter(
                "kafka",
                9092,
                'servers: ["{address}"]\n'
                "# A name is TOPIC:KEY. A pattern with a key takes only messages that have one.\n"
                + _LOG_IN,
                target="create_topics: true  # where it is absent; off: make the topics before\n",
            ),
        },
    ),
    EndpointKind(
        "memory",
        MemorySettings,
        "gateway.endpoints.memory",
        in_process=True,
        retains=True,
        origin_remedy="set `headers: true` there",
    ),
)


def check(kind: EndpointKind) -> None:
    """Look at a row of another package.

    Raises:
        TypeError: the loader and the schema cannot read its settings.
        ModuleNotFoundError: its module is absent.
    """
    if find_spec(kind.module) is None:
        raise ModuleNotFoundError(f"No module named {kind.module!r}")
    for field in fields_by_key(kind.settings).values():
        if "doc" not in field.metadata:
            raise TypeError(f"{kind.settings.__name__}.{field.name} is not declared by setting()")
    if not issubclass(kind.settings, EndpointSettings):
        raise TypeError(f"{kind.settings.__name__} does not inherit from EndpointSettings")
    if absent := sorted(kind.settings.__abstractmethods__):
        raise TypeError(f"{kind.settings.__name__} has no {absent[0]!r}")


ENDPOINT_KINDS: Final = Registry("gateway.endpoints", EndpointKind, _ROWS, check)


def starters() -> dict[str, tuple[EndpointKind, Starter]]:
    """Return the choices of `gateway init`, each with its kind."""
    return {
        name: (kind, starter)
        for kind in ENDPOINT_KINDS.values()
        for name, starter in kind.starters.items()
    }


def make_source(
    settings: EndpointSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> Source:
    """Return a closed source with all `subscriptions` on one connection.

    `instance` distinguishes the sources of one endpoint, for example by the name of the route. It
    becomes part of the client id or of the queue's name, so keep it the same from run to run.

    Raises:
        DriverMissingError: the driver is not installed; the text names the extra.
    """
    make = _function(settings, "open_source")
    return cast(Source, make(settings, tuple(subscriptions), instance=instance))


def removal(
    source: Source, settings: EndpointSettings, subscriptions: Sequence[Subscription]
) -> Callable[[str], bool]:
    """Return the function that tells of an address whether `source` removes what came with it.

    Such a message is gone for others once it is settled: so the gateway keeps a dead letter of what
    it does not deliver.
    """
    if isinstance(source, Removes):
        return source.removes
    removes = any(settings.removes(each.pattern) for each in subscriptions)
    return lambda _address: removes


def count_held(settings: EndpointSettings, made: Made) -> Held:
    """Return what the broker tells of a thing that a source made; errors as in `make_source`.

    Raises:
        EndpointError: the broker does not answer, or refuses.
    """
    return cast(Held, _function(settings, "count_held")(settings, made))


def end_made(settings: EndpointSettings, made: Made) -> None:
    """End a thing that a source made, with the messages in it; raises as `count_held` does."""
    _function(settings, "end_made")(settings, made)


def make_sink(settings: EndpointSettings, *, instance: str = "") -> Sink:
    """Return a closed sink; `instance` and errors as in `make_source`."""
    return cast(Sink, _function(settings, "open_sink")(settings, instance=instance))


def warm_up(settings: EndpointSettings) -> None:
    """Load the driver, and what it loads itself at its first connection, without connecting.

    Raises:
        DriverMissingError: the driver is not installed; the text names the extra.
    """
    _function(settings, "open_sink")
    if (load := getattr(import_module(find_kind(settings).module), "warm_up", None)) is not None:
        load(settings)


def find_kind(settings: EndpointSettings) -> EndpointKind:
    """Return the kind whose settings these are."""
    for kind in ENDPOINT_KINDS.values():
        if type(settings) is kind.settings:
            return kind
    raise EndpointError(f"{settings.name}: no kind of endpoint has {type(settings).__name__}")


def _function(settings: EndpointSettings, name: str) -> Callable[..., Any]:
    """Return the function `name` of the module of these settings' kind."""
    kind = find_kind(settings)
    package = ENDPOINT_KINDS.package_of(kind.name)
    try:
        return cast(Callable[..., Any], getattr(import_module(kind.module), name))
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gateway."):
            raise
        text = f"the module {error.name!r} is not installed; install the package {package!r} again"
        if kind.extra:
            text = not_installed(str(error.name), kind.extra, package)
        raise DriverMissingError(f"{settings.name}: {text}") from error
    except Exception as error:  # of another package: the gateway's own faults show their place
        if package == GATEWAY:
            raise
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise EndpointError(f"{settings.name}: package {package!r}: {reason}") from error
