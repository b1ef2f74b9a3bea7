"""Hard names from MQTT over topics and keys of Kafka and over names of EMS, back to MQTT.

The gateway is killed, and another member of its group comes and goes. No message is lost or has
another name, and the messages of a key stay in order. A name comes back by topic and key, or from a
topic and key of many names by its proven header.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.kafka_server import StartKafka
from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_marked, read_archive
from tests.chaos.rig import FAST_BACKOFF, Witness, end_after_all, running
from tests.chaos.test_hard_names import NamedLoad, check_night
from tests.strategies import PIECES
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

GROUP, MARK = "hard-names", "hardkafka"
TOPICS, RATE = 25, 200  # messages a second
CONFIG = """\
gateway: {{name: test}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {backoff}}}
  lake:
    {{kind: kafka, servers: ['{kafka}'], group_id: {group}, session_timeout: 6, answer_timeout: 5,
     create_topics: true, partitions: 2, {backoff}}}
  ems: {{{ems}, client_id: {mark}, durable: '{mark}-{{pattern}}', answer_timeout: 5, {backoff}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, {backoff}}}
routes:
  there:
    from: {{endpoint: source, pattern: "src/{{line}}/{{rest...}}"}}
    to: {{endpoint: lake, {written}}}
  over:
    from: {{endpoint: lake, {taken}}}
    to: {{endpoint: ems, template: "{mark}.{{line}}.{{rest...}}"}}
  back:
    from: {{endpoint: ems, pattern: "{mark}.{{line}}.{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{line}}/{{rest...}}"}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
"""
PARTS = 'topic: "mid.{line}", key: "{rest...}"'
HEADER = 'topic: mid.all, key: "{line}"', "names_of: there"


def hard_names(count: int) -> list[str]:
    """Return names of MQTT below one level, the same in every run; their first levels are few."""
    chance = random.Random(64)  # noqa: S311  # not for security
    # ActiveMQ divides a name at a comma
    pieces = [each for each in PIECES if not set(each) & set("+#\0/,")]

    def level() -> str:
        made = "".join(chance.choices(pieces, k=chance.randrange(4)))
        return f"{made}x" if made == ":" else made  # the boundary of topic and key

    lines = [level() for _ in range(TOPICS)]
    found: dict[str, None] = {}
    while len(found) < count:
        levels = [chance.choice(lines), *(level() for _ in range(chance.randrange(1, 5)))]
        if not levels[-1].endswith(" "):  # ActiveMQ trims a name
            found["/".join(levels)] = None
    return list(found)


@contextmanager
def another_member(server: str) -> Iterator[None]:
    """Be a member of the group that has partitions, and settles nothing."""
    from confluent_kafka import Consumer  # noqa: PLC0415  # the fixture skips without it

    has_some, over = threading.Event(), threading.Event()
    options = {"bootstrap.servers": server, "group.id": GROUP, "session.timeout.ms": 6_000}
    options |= {"enable.auto.commit": False, "partition.assignment.strategy": "range"}
    consumer = Consumer(options)

    def assigned(_consumer: Consumer, given: Sequence[object]) -> None:
        if given:
            has_some.set()

    consumer.subscribe(["^mid\\..*"], on_assign=assigned)

    def poll() -> None:
        while not over.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert has_some.wait(PATIENCE), "the group gives it no partitions"
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("written", "taken"),
    [pytest.param(PARTS, PARTS, id="parts"), pytest.param(*HEADER, id="header")],
)
@pytest.mark.parametrize(
    ("messages", "names", "kills", "members"),
    [
        pytest.param(500, 100, 2, 1, id="2", marks=pytest.mark.nightly),
        pytest.param(10_000, 1_000, 20, 4, id="20", marks=pytest.mark.chaos),
    ],
)
def test_kills_and_rebalances_lose_misname_and_disorder_nothing(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    start_kafka: StartKafka,
    activemq: ActiveMq,
    messages: int,
    names: int,
    kills: int,
    members: int,
    written: str,
    taken: str,
) -> None:
    source, target, kafka = start_mosquitto(), start_mosquitto(), start_kafka()
    hard = hard_names(names)
    jars = ", ".join(client_jars())
    config = tmp_path / "gateway.yaml"
    config.write_text(
        CONFIG.format(
            source=source.port, kafka=kafka.url, target=target.port, group=GROUP, mark=MARK,
            ems=f"kind: jms, classpath: [{jars}], factory: {FACTORY}, urls: ['{activemq.url}']",
            folder=tmp_path, backoff=FAST_BACKOFF, written=written, taken=taken,
        )
    )  # fmt: skip
    load, witness = NamedLoad(source.port, hard, RATE), Witness(target.port)
    with ExitStack() as stack:
        stack.callback(witness.stop)
        stack.callback(load.stop)
        stays: list[ExitStack] = []  # a member that stays through a kill
        for kill in range(kills):
            with running(config) as gateway:
                for end, side in (("lake", "source"), ("ems", "source")):
                    gateway.wait_for("connected", endpoint=end, side=side)
                if kill == 0:  # sessions exist from now on
                    load.start(messages)
                if stays:
                    stays.pop().close()
                witness.wait_for(messages * (kill + 1) // (kills + 1))
                if kill % (kills // members) == 1:
                    joined = stack.enter_context(ExitStack())
                    joined.enter_context(another_member(kafka.url))
                    if kill % 2:
                        stays.append(joined)
                    else:
                        joined.close()
        with running(config) as gateway:
            for joined in stays:
                joined.close()
            witness.wait_for(messages)
            sent = end_after_all(gateway, load, witness)

    arrived = {
        number: address for address, numbers in witness.numbers.items() for number in numbers
    }
    assert arrived == {number: f"dst/{hard[number % names]}" for number in range(sent)}
    check_marked(read_archive(tmp_path), witness.duplicates)
    check_night(tmp_path / "archive", 3 * sent)
