"""`gateway run` with a spool between real brokers: outages, kills, dead letters, reloads."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.cli import main
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Client, Process, clients
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: test, heartbeat_seconds: 0.2}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, backoff_min: 0.05, backoff_max: 0.2}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, backoff_min: 0.05, backoff_max: 0.2{more}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
"""


def write_config(
    folder: Path, source: Mosquitto, target: Mosquitto, more: str = "", text: str = CONFIG
) -> Path:
    config = folder / "gateway.yaml"
    config.write_text(text.format(source=source.port, target=target.port, folder=folder, more=more))
    return config


@contextmanager
def running(config: Path, *, connected: bool = True) -> Iterator[Process]:
    process = Process(config)
    try:
        process.wait_for("connected", endpoint="source", side="source")
        if connected:
            process.wait_for("connected", endpoint="target", side="sink")
        yield process
    finally:
        process.end(signal.SIGKILL)


class Commands:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *arguments: str | Path) -> tuple[int, str]:
        """Return the exit status and the standard output."""
        self._capsys.readouterr()
        status = main([str(each) for each in arguments])
        return status, self._capsys.readouterr().out


@pytest.fixture
def commands(capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capsys)


def publish(into: Client, numbers: Sequence[int], topic: str = "src/a") -> None:
    """Publish; return when the source broker has all messages."""
    sent = [into.publish(topic, b"%d" % number) for number in numbers]
    for each in sent:
        each.wait_for_publish(PATIENCE)


def test_a_target_that_is_away_over_a_kill_of_the_gateway_gets_everything_in_order(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, source, target)
    with clients(source, target) as (into, out):
        with running(config):
            publish(into, range(10))
            out.wait_for(lambda arrived: len(arrived) >= 10)
        target.stop()
        for life in range(1, 4):  # each run is killed during its work
            with running(config, connected=False):
                publish(into, range(life * 500, life * 500 + 500))
        target.start()
        with running(config) as gateway:
            publish(into, [9_999])
            out.wait_for(lambda arrived: arrived[-1][1] == b"9999")
            assert gateway.end() == 0

    wanted = [*range(10), *range(500, 2_000), 9_999]
    firsts = list(dict.fromkeys(int(payload) for _, payload in out.arrived))
    assert firsts == wanted
    rows = archived(tmp_path)
    ends = Counter(row["id"] for row in rows if row["leg"] == "delivered")
    # after a kill between a spooled copy and its rows the source delivers the message again
    assert {row["id"] for row in rows if row["leg"] == "received"} <= set(ends)


def test_dead_letters_are_listed_shown_and_sent_again(
    tmp_path: Path, start_mosquitto: StartMosquitto, commands: Commands
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, source, target, more=", max_packet: 200")
    with clients(source, target) as (into, out):
        with running(config) as gateway:
            publish(into, range(3))
            into.publish("src/big", b"x" * 500).wait_for_publish(PATIENCE)
            publish(into, range(3, 6))
            out.wait_for(lambda arrived: len(arrived) >= 6)
            gateway.wait_for("first dead letter")
            assert gateway.end() == 0

        (line,) = commands.run("dead-letters", "list", config, "--json")[1].splitlines()
        letter = json.loads(line)
        assert (letter["source_name"], letter["endpoint"]) == ("src/big", "target")
        number = str(letter["number"])
        _, shown = commands.run("dead-letters", "show", config, number)
        assert "dst/big" in shown
        assert "x" * 500 in shown
        assert "1 dead letter\n" in commands.run("dead-letters", "list", config)[1]
        assert "dst/big" in commands.run("dead-letters", "replay", config, "--dry-run")[1]

        status, refused = commands.run("dead-letters", "replay", config, number)
        assert status == 1
        assert "0 delivered, 1 kept" in refused
        write_config(tmp_path, source, target)  # it fits without the limit
        again = commands.run("dead-letters", "replay", config, number)
        assert again == (0, "1 delivered, 0 kept\n")
        out.wait_for(lambda arrived: arrived[-1] == ("dst/big", b"x" * 500))
        assert commands.run("dead-letters", "show", config, number)[0] == 1

    legs = Counter(row["leg"] for row in archived(tmp_path) if row["size"] == 500)
    legs.pop("spooled", None)  # it may come between the target's connection and its first check
    assert legs == {"received": 1, "dead": 1, "delivered": 1}
    assert [row["leg"] for row in archived(tmp_path) if row["replayed"]] == ["delivered"]


def test_a_dead_letter_is_sent_again_through_the_present_mapping(
    tmp_path: Path, start_mosquitto: StartMosquitto, commands: Commands
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, source, target, more=", limits: {levels: 3}")
    with clients(source, target) as (into, out):
        with running(config) as gateway:
            into.publish("src/a/b/c/d", b"deep").wait_for_publish(PATIENCE)
            gateway.wait_for("first dead letter")
            assert gateway.end() == 0
        write_config(tmp_path, source, target)
        assert commands.run("dead-letters", "replay", config)[1] == "1 delivered, 0 kept\n"
        out.wait_for(lambda arrived: arrived == [("dst/a/b/c/d", b"deep")])
        assert commands.run("dead-letters", "purge", config)[0] == 1  # no dead letter is left


@pytest.mark.nightly
def test_a_reload_under_traffic_loses_nothing_and_a_bad_file_changes_nothing(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, source, target)
    good = config.read_text()
    more = good.replace(
        "archive:",
        """\
  second:
    from: {endpoint: source, pattern: "new/{rest...}"}
    to: {endpoint: target, template: "dst/new/{rest...}"}
archive:""",
    )
    with clients(source, target) as (into, out), running(config) as gateway:
        sent = [into.publish("src/a", b"%d" % number) for number in range(3_000)]
        for times, text in enumerate((more, good, more), 1):
            config.write_text(text)
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for("reloaded", times=times)
        config.write_text(more.replace("dst/new/{rest...}", "dst/new/{rset...}"))
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for("reload rejected")
        for each in sent:
            each.wait_for_publish(PATIENCE)
        into.publish("new/x", b"by the new route").wait_for_publish(PATIENCE)
        out.wait_for(lambda arrived: ("dst/new/x", b"by the new route") in arrived)
        out.wait_for(lambda arrived: len({p for t, p in arrived if t == "dst/a"}) == 3_000)
        assert any("rset" in str(line["message"]) for line in gateway.lines)
        connects = [line for line in gateway.lines if line["message"] == "connected"]
        assert sum(line["side"] == "sink" for line in connects) == 1  # the sink was kept
        assert gateway.end() == 0

    firsts = list(dict.fromkeys(payload for topic, payload in out.arrived if topic == "dst/a"))
    assert firsts == [b"%d" % number for number in range(3_000)]


def test_a_source_without_its_subscription_is_found_by_the_missing_heartbeat(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    acl = tmp_path / "acl"
    acl.write_text("topic readwrite #\n")
    source, target = start_mosquitto("allow_anonymous true", f"acl_file {acl}"), start_mosquitto()
    text = CONFIG.replace("relay:", 'relay:\n    heartbeat: "src/beat"')
    config = write_config(tmp_path, source, target, text=text)
    with clients(source, target) as (into, out), running(config) as gateway:
        out.wait_for(lambda arrived: sum(topic == "dst/beat" for topic, _ in arrived) >= 3)
        acl.write_text("topic write #\ntopic read $SYS/#\n")  # it is connected and receives nothing
        source.reread()
        gateway.wait_for("source: no heartbeat of route 'relay'")
        acl.write_text("topic readwrite #\n")
        source.reread()
        before = len(out.arrived)
        out.wait_for(lambda arrived: any(topic == "dst/beat" for topic, _ in arrived[before:]))
        publish(into, [1])
        out.wait_for(lambda arrived: ("dst/a", b"1") in arrived)
        assert gateway.end() == 0


def test_a_target_that_accepts_and_never_answers_does_not_stop_the_other(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target, stuck = start_mosquitto(), start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, source, target)
    text = config.read_text()
    text = text.replace("heartbeat_seconds: 0.2", "stuck_after_seconds: 0.5")
    text = text.replace(
        "routes:", f"  stuck: {{kind: mqtt, host: 127.0.0.1, port: {stuck.port}}}\nroutes:"
    )
    text = text.replace(
        'to: {endpoint: target, template: "dst/{rest...}"}',
        'to: [{endpoint: target, template: "dst/{rest...}"},'
        ' {endpoint: stuck, template: "dst/{rest...}"}]',
    )
    config.write_text(text)
    late = Client(stuck.port, "dst/#")
    with clients(source, target) as (into, out), running(config) as gateway:
        gateway.wait_for("connected", endpoint="stuck", side="sink")
        publish(into, range(10))
        late.wait_for(lambda arrived: len(arrived) == 10)
        stuck.freeze()
        publish(into, range(10, 500))
        gateway.wait_for("stuck: no answer for")
        publish(into, range(500, 1_000))
        out.wait_for(lambda arrived: len({payload for _, payload in arrived}) == 1_000)
        stuck.thaw()
        late.wait_for(lambda arrived: len({payload for _, payload in arrived}) == 1_000)
        assert gateway.end() == 0
    late.close()

    firsts = list(dict.fromkeys(int(payload) for _, payload in late.arrived))
    assert firsts == list(range(1_000))


BOTH = """\
gateway: {{name: test}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, version: "3.1.1"{more}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: "3.1.1"}}
routes:
  both:
    direction: both
    from: {{endpoint: source, pattern: "x/{{rest...}}"}}
    to: {{endpoint: target, template: "x/{{rest...}}"}}
archive: {{path: {folder}/archive}}
"""


def test_both_directions_over_mqtt_3_1_1_carry_each_of_many_equal_messages_once(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, source, target, text=BOTH)
    here, there = Client(source.port, "x/#"), Client(target.port, "x/#")
    with running(config) as gateway:
        gateway.wait_for("connected", endpoint="target", side="source")
        for client in (here, there):
            sent = [client.publish("x/level", b"23") for _ in range(200)]
            for each in sent:
                each.wait_for_publish(PATIENCE)
        here.publish("x/end", b"here").wait_for_publish(PATIENCE)
        there.publish("x/end", b"there").wait_for_publish(PATIENCE)
        for client in (here, there):
            client.wait_for(lambda arrived: sum(topic == "x/end" for topic, _ in arrived) == 2)
        assert gateway.end() == 0
    here.close()
    there.close()

    assert [sum(t == "x/level" for t, _ in client.arrived) for client in (here, there)] == [
        400,
        400,
    ]
