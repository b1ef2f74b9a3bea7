"""Dead letters that are sent again are recorded as replays, with the hash of what was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import NO_HEADERS, Headers, Message
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.gateway import Gateway
from gateway.runtime.outbound.dead_letters import DeadLetters
from gateway.runtime.outbound.spool_db import SpoolDatabase, connect
from gateway.runtime.status import take_status
from tests.archived import archived
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

CONFIG = """
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  erp: {{kind: memory, dialect: ems, broker: erp-{run}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to:
      - {{endpoint: erp, template: "ORDERS.{{rest...}}"}}
      - {{endpoint: erp, template: "TEXTS.{{rest...}}", payload: text}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.format(run=uuid4().hex, folder=tmp_path))
    return file


@pytest.fixture
def erp(config: Path) -> Iterator[Source]:
    broker = config.read_text().partition("broker: erp-")[2].partition("}")[0]
    settings = MemorySettings(name="out", dialect="ems", broker=f"erp-{broker}")
    with opened(source := make_source(settings, [Subscription(">")])):
        yield source


def keep(folder: Path, *letters: DeadLetter) -> None:
    """Store the dead letters as a gateway does."""
    database = SpoolDatabase(folder / "spool")
    DeadLetters(database, 1 << 20).put(letters, lambda: None)
    assert database.flush(PATIENCE)
    database.close(PATIENCE)


def test_a_running_gateway_counts_the_letters_that_are_left(
    tmp_path: Path, config: Path, erp: Source
) -> None:
    keep(
        tmp_path,
        letter(1, "erp", "erp", Message("ORDERS.1", b"a")),
        letter(2, "erp", "erp", Message("ORDERS.2", b"bb")),
    )
    gateway = Gateway(load(config))
    gateway.start()
    try:
        assert take_status(gateway).dead_letters == 2
        assert main(["dead-letters", "replay", str(config), "1"]) == 0
        assert len(collect(erp, 1)) == 1
        until(lambda: take_status(gateway).dead_letters == 1)
        assert main(["dead-letters", "purge", str(config), "2", "--yes"]) == 0
        until(lambda: take_status(gateway).dead_letters == 0)
        assert take_status(gateway).dead_letter_bytes == 0
    finally:
        gateway.stop(PATIENCE)


def test_a_gateway_counts_the_letters_that_were_sent_again_since_its_start(
    tmp_path: Path, config: Path, erp: Source
) -> None:
    for number in (1, 2, 3, 4):
        keep(tmp_path, letter(number, "erp", "erp", Message(f"ORDERS.{number}", b"a")))
    assert main(["dead-letters", "replay", str(config), "1"]) == 0
    gateway = Gateway(load(config))
    gateway.start()
    try:
        assert take_status(gateway).dead_letters_sent_again == 0
        numbers = [str(each) for (each,) in rows(tmp_path, "SELECT number FROM letters")]
        assert main(["dead-letters", "replay", str(config), *numbers[:2]]) == 0
        assert main(["dead-letters", "purge", str(config), "--yes"]) == 0
        until(lambda: take_status(gateway).dead_letters == 0)
        assert take_status(gateway).dead_letters_sent_again == 2
        assert len(collect(erp, 3)) == 3
    finally:
        gateway.stop(PATIENCE)


def rows(folder: Path, query: str) -> list[tuple[int]]:
    with closing(connect(folder / "spool")) as database:
        return database.execute(query).fetchall()


def letter(number: int, target: str, endpoint: str, message: Message) -> DeadLetter:
    return DeadLetter(
        0, 1, bytes(15) + bytes([number]), "orders", "plant", "orders/1", target, endpoint,
        "rule", "why", 1, message,
    )  # fmt: skip


def test_the_rows_are_replays_and_a_converted_copy_stays_converted(
    tmp_path: Path, config: Path, erp: Source
) -> None:
    """The hash of a copy that was converted before its rejection is not that of the receipt."""
    keep(
        tmp_path,
        letter(1, "erp", "erp", Message("ORDERS.1", b"as received")),
        letter(2, "erp:2", "erp", Message("TEXTS.1", "converted before")),
        letter(3, "erp:2", "", Message("orders/1", b"not translated")),
    )

    assert main(["dead-letters", "replay", str(config)]) == 0

    sent = [message.payload for message in collect(erp, 3)]
    assert sorted(map(str, sent)) == ["b'as received'", "converted before", "not translated"]
    rows = sorted(archived(tmp_path), key=lambda r: r["id"])
    assert [(row["outcome"], row["replayed"]) for row in rows] == [
        ("accepted", True),
        ("converted", True),
        ("converted", True),
    ]
    assert rows[1]["hash"] == fingerprint("converted before")[1]


def test_the_letters_of_an_earlier_name_are_sent_to_the_present_one(
    tmp_path: Path, config: Path, erp: Source
) -> None:
    """Their rows have the label that the dead row has, so that the night counts a recovery."""
    keep(
        tmp_path,
        letter(1, "erp", "erp", Message("ORDERS.1", b"refused")),
        letter(2, "erp:2", "", Message("orders/1", b"not translated")),
    )
    text = config.read_text()
    for name, now in (("plant", "site"), ("erp", "sap")):
        text = text.replace(f"{name}: {{", f"{now}: {{was: {name}, ")
        text = text.replace(f"endpoint: {name},", f"endpoint: {now},")
    config.write_text(text)

    assert main(["dead-letters", "replay", str(config)]) == 0

    sent = [(message.address, message.payload) for message in collect(erp, 2)]
    assert sorted(sent, key=str) == [("ORDERS.1", b"refused"), ("TEXTS.1", "not translated")]
    rows = sorted(archived(tmp_path), key=lambda row: row["id"])
    assert [(row["endpoint"], row["target"], row["outcome"]) for row in rows] == [
        ("sap", "erp", "accepted"),
        ("sap", "erp:2", "converted"),
    ]


def test_a_letter_that_gateway_replay_delivered_is_not_sent_again(
    tmp_path: Path, config: Path, erp: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    """The archive has its delivery, and the spool has the letter still."""
    for number, target in ((1, "erp"), (2, "erp")):
        keep(tmp_path, letter(number, target, "erp", Message("ORDERS.1", b"one")))
    replay = ["dead-letters", "replay", str(config)]
    assert main([*replay, "1"]) == 0  # its row is like that of gateway replay
    assert len(collect(erp, 1)) == 1
    keep(tmp_path, letter(1, "erp", "erp", Message("ORDERS.1", b"one")))
    capsys.readouterr()

    assert main([*replay, "--dry-run"]) == 0
    planned = capsys.readouterr().out
    assert main(replay) == 0
    sent = collect(erp, 1)
    assert erp.receive(0) is None

    assert [message.payload for message in sent] == [b"one"]
    assert "3  orders/1: not sent, an earlier replay delivered it" in planned
    told = capsys.readouterr().out
    assert "1 delivered, 0 kept" in told
    assert "1 not sent again: an earlier replay delivered them" in told
    main(["dead-letters", "list", str(config)])
    assert "orders/1" not in capsys.readouterr().out  # none is left
    rows = archived(tmp_path)
    assert sorted(row["id"][-1] for row in rows) == [1, 2]


def test_a_letter_that_the_selector_still_leaves_out_is_kept(
    tmp_path: Path, config: Path, erp: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    low, high = (Headers(properties={"urgency": each}) for each in ("low", "high"))
    keep(
        tmp_path,
        letter(1, "erp", "", Message("orders/1", b"left out", low)),
        letter(2, "erp", "", Message("orders/1", b"wanted", high)),
    )
    pattern = 'pattern: "orders/{rest...}"'
    selected = f"{pattern}, selector: \"urgency = 'high'\""
    config.write_text(config.read_text().replace(pattern, selected))

    assert main(["dead-letters", "replay", str(config)]) == 1

    assert [each.payload for each in collect(erp, 1)] == [b"wanted"]
    printed = capsys.readouterr()
    assert "the selector of the route still leaves it out" in printed.out + printed.err


def test_a_letter_that_expired_is_sent_without_its_expiry(
    tmp_path: Path, config: Path, erp: Source
) -> None:
    """A wait for its target made it a dead letter; to send it again is to want it late."""
    past = Headers(expiry=1)
    keep(
        tmp_path,
        letter(1, "erp", "erp", Message("ORDERS.1", b"as it was", past)),
        letter(2, "erp", "", Message("orders/2", b"by the routes", past)),
    )

    assert main(["dead-letters", "replay", str(config)]) == 0

    got = collect(erp, 2)
    assert {each.payload for each in got} >= {b"as it was", b"by the routes"}
    assert [each.headers.expiry for each in got] == [None] * len(got)


@pytest.mark.parametrize("spooled", [False, True], ids=["direct", "from-the-spool"])
def test_a_letter_of_a_target_has_the_fields_in_its_name(
    tmp_path: Path, config: Path, *, spooled: bool
) -> None:
    """Without them no night could make the name again."""
    text = config.read_text().replace("ORDERS.{rest...}", "ORDERS.{payload.site}")
    text = text.replace("broker: erp", 'allow: [">"], broker: erp')
    if spooled:
        text = text.replace('.site}"}', '.site}", thin: {seconds: 3600}}')
    config.write_text(
        text.replace('orders/{rest...}"}', 'orders/{rest...}"}\n    retained: ignore')
    )
    gateway = Gateway(load(config))
    gateway.start()
    broker = text.partition("broker: plant-")[2].partition("}")[0]
    settings = MemorySettings(name="in", dialect="mqtt", broker=f"plant-{broker}")
    counters = gateway.counters["orders"]
    try:
        until(lambda: all(lane.direct for lane in gateway.lanes.values()))
        with opened(sink := make_sink(settings)):
            expired = Message("orders/1", b'{"site": 7}', Headers(expiry=1))
            send(sink, *[replace(expired, headers=NO_HEADERS)] * spooled, expired)
            until(lambda: counters.dead + counters.spooled == 2)
    finally:
        gateway.stop(PATIENCE)
    if spooled:
        gateway = Gateway(load(config))
        gateway.start()
        until(lambda: gateway.counters["orders"].dead == 1)
        gateway.stop(PATIENCE)

    assert main(["dead-letters", "replay", str(config)]) == 0

    rows = [row for row in archived(tmp_path) if row["replayed"] and row["target"] == "erp"]
    assert [json.loads(row["fields"]) for row in rows] == [{"payload.site": "7"}]
    assert {row["name"] for row in rows} == {"ORDERS.7"}


def test_the_value_that_a_target_accepted_is_forgotten_after_a_replay(
    tmp_path: Path, config: Path, erp: Source
) -> None:
    """The target has the replayed value now: an equal message of the source is a change."""
    text = config.read_text().replace(
        'rest...}"}\n      -', 'rest...}", thin: {on_change: true}}\n      -'
    )
    config.write_text(text)
    keep(tmp_path, letter(1, "erp", "erp", Message("ORDERS.1", b"old")))
    gateway = Gateway(load(config))
    gateway.start()
    broker = text.partition("broker: plant-")[2].partition("}")[0]
    settings = MemorySettings(name="in", dialect="mqtt", broker=f"plant-{broker}")
    counters = gateway.counters["orders"]
    try:
        until(lambda: all(lane.direct for lane in gateway.lanes.values()))
        with opened(sink := make_sink(settings)):
            for thinned in (0, 1):
                send(sink, Message("orders/1", b"on"))
                until(lambda: counters.thinned == thinned)  # noqa: B023  # called here
                until(lambda: counters.delivered == 2 + thinned)  # noqa: B023  # likewise
            assert main(["dead-letters", "replay", str(config)]) == 0
            send(sink, Message("orders/1", b"on"), Message("orders/2", b"on"))
            until(lambda: counters.delivered == 7)
    finally:
        gateway.stop(PATIENCE)
    arrived = [each.payload for each in collect(erp, 8) if each.address == "ORDERS.1"]
    assert arrived == [b"on", b"old", b"on"]
    assert counters.thinned == 1
