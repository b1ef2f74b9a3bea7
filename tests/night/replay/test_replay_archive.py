"""Archived messages are sent again, once, marked and recorded."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.storage import LocalStorage, open_storage
from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import (
    GATEWAY_ID,
    GATEWAY_TRACE,
    Headers,
    Message,
)
from gateway.model.outcome import RETRY, Settlement
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.lookup import search
from gateway.night.archive.lookup.search import ReplayRange, received_rows
from gateway.night.replay.replay_archive import Replay, ReplayChoice
from gateway.night.replay.sender import ReplaySender
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON, archive, received
from tests.archived import convert_journals, read_rows
from tests.endpoints.exchange import collect, opened, send
from tests.night.archive.compaction.days import merged_here
from tests.night.replay.replay_rig import MESSAGES, RICH, ReplayRig, replay_rig
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("journals_stay")


def test_messages_are_sent_again_unchanged_and_marked_as_a_second_attempt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        first = rig.relay(*MESSAGES)
        assert rig.replay() == 0
        again = collect(rig.out, 3)

    assert "3 arrived, 0 did not" in capsys.readouterr().out
    assert [message.address for message in again] == ["ORDERS.1", "ORDERS.2", "ORDERS.3"]
    assert [message.payload for message in again] == [message.payload for message in first]
    assert again[0].headers.properties == RICH.properties
    assert (again[0].headers.priority, again[0].headers.correlation_id) == (7, b"\x00\x01")
    delivered = rig.rows("delivered")
    attempts = [(row["id"], row["attempt"]) for row in delivered]
    ids = [row["id"] for row in rig.rows("received")]
    assert sorted(attempts) == [(each, attempt) for each in ids for attempt in (1, 2)]
    assert len({(row["id"], row["hash"], row["received"]) for row in delivered}) == 3
    received_rows_by_id = {row["id"]: (row["time"], row["name"]) for row in rig.rows("received")}
    assert all(
        (row["received"], row["source_name"]) == received_rows_by_id[row["id"]] for row in delivered
    )
    assert {row["redelivered"] for row in delivered if row["attempt"] == 2} == {True}
    assert {(row["attempt"], row["replayed"]) for row in delivered} == {(1, None), (2, True)}
    writers = {path.name.rpartition("-")[0] for path in rig.archive.glob("date=*/*/*.parquet")}
    assert {writer.split("-")[0] for writer in writers} == {"gateway", "gateway~replay"}


def test_a_replayed_copy_has_the_ids_of_the_first_one(tmp_path: Path) -> None:
    with replay_rig(tmp_path) as rig:
        text = rig.file.read_text().replace('.{rest...}"}', '.{rest...}", add_message_id: true}')
        rig.file.write_text(text)
        first = rig.relay(*MESSAGES)

        assert rig.replay() == 0
        again = collect(rig.out, len(MESSAGES))

    for one, other in zip(first, again, strict=True):
        for name in (GATEWAY_ID, GATEWAY_TRACE):
            assert one.headers.properties[name] == other.headers.properties[name] != ""


def test_a_name_from_a_field_is_made_again_of_the_archived_message(tmp_path: Path) -> None:
    """Its row also has the fields; a payload that was not kept makes no name."""
    with replay_rig(tmp_path) as rig:
        text = rig.file.read_text().replace("dialect: ems", 'dialect: ems, allow: [">"]')
        text = text.replace(".{rest...}", ".{payload.site}.{property.word}")
        rig.file.write_text(
            text.replace("archive_payload", "retained: ignore\n    archive_payload")
        )
        rig.relay(Message("orders/1", b'{"site": 7}', RICH))

        assert rig.replay() == 0
        (again,) = collect(rig.out, 1)

    assert again.address == "ORDERS.7.3"
    fields = {"payload.site": "7", "property.word": "3"}
    assert [json.loads(row["fields"]) for row in rig.rows("delivered")] == [fields] * 2


def test_a_dry_run_shows_the_changes_of_the_mapping_and_sends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES, Message("orders/1", b"more"))
        assert rig.replay("--dry-run") == 0
        same = capsys.readouterr().out
        rig.write("NEW")
        assert rig.replay("--dry-run") == 1
        other = capsys.readouterr().out
        assert rig.out.receive(0.1) is None

    assert "2  orders/1 -> erp: sent as ORDERS.1, as before" in same
    assert "would send 4, 0 of them under another name; 0 cannot be sent" in same
    assert "2  orders/1 -> erp: sent as NEW.1, before as ORDERS.1" in other
    assert "would send 4, 4 of them under another name; 0 cannot be sent" in other


def test_a_copy_that_a_replay_delivered_is_not_sent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        rig.reconciled(missing=[rig.rows("received")[1]["id"]])
        assert rig.replay("--class", "missing") == 0
        assert [message.address for message in collect(rig.out, 1)] == ["ORDERS.2"]
        capsys.readouterr()

        assert rig.replay("--dry-run") == 0
        planned = capsys.readouterr().out
        assert rig.replay() == 0
        sent = [message.address for message in collect(rig.out, 2)]
        assert rig.replay("--class", "missing") == 0
        assert rig.replay() == 0
        assert rig.out.receive(0) is None
        told = capsys.readouterr().out
        assert rig.replay("--again") == 0
        assert len(collect(rig.out, 3)) == 3

    assert "orders/2" not in planned
    assert "would send 2, 0 of them under another name; 0 cannot be sent" in planned
    assert "1 not sent again: an earlier replay delivered them" in planned
    assert sent == ["ORDERS.1", "ORDERS.3"]
    assert told.count("0 arrived, 0 did not") == 2
    assert "3 not sent again: an earlier replay delivered them; --again sends them, too" in told


def test_a_copy_of_an_earlier_name_is_sent_to_the_present_one(tmp_path: Path) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(Message("orders/1", b"one"), Message("orders/2", b"two"))
        rig.reconciled(missing=[rig.rows("received")[1]["id"]])
        text = rig.file.read_text()
        for name, now in (("plant", "site"), ("erp", "sap")):
            text = text.replace(f"{name}: {{", f"{now}: {{was: {name}, ")
            text = text.replace(f"endpoint: {name},", f"endpoint: {now},")
        rig.file.write_text(text)

        assert rig.replay("--class", "missing") == 0
        assert [message.address for message in collect(rig.out, 1)] == ["ORDERS.2"]
        assert rig.replay("--class", "missing") == 0
        assert rig.out.receive(0) is None

    (again,) = (row for row in rig.rows("delivered") if row["replayed"])
    assert (again["endpoint"], again["target"]) == ("sap", "erp")


def test_a_compacted_replay_is_not_sent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        assert rig.replay() == 0
        assert len(collect(rig.out, 3)) == 3
        for day in {datetime.now(UTC).date(), rig.rows("received")[0]["time"].date()}:
            compact_day(ArchiveLocation(rig.archive), day, merged_here, lambda _: None)
        assert {path.name.split("-")[0] for path in rig.archive.glob("date=*/*/*")} == {"merged"}

        assert rig.replay() == 0
        assert rig.out.receive(0) is None

    assert "3 not sent again" in capsys.readouterr().out


def test_a_replay_beside_another_one_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other one would have ended when the first has read what was sent before."""
    read, others = search.replayed_copies, list[int]()

    def slowly(*arguments: Any) -> Mapping[bytes, Collection[str]]:  # noqa: ANN401  # passed on
        found = read(*arguments)
        monkeypatch.setattr(search, "replayed_copies", read)
        others.append(rig.replay())
        return found

    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        monkeypatch.setattr(search, "replayed_copies", slowly)
        assert rig.replay() == 0
        assert len(collect(rig.out, 3)) == 3
        assert rig.out.receive(0) is None
        assert others == [2]
        assert rig.replay("--dry-run") == 0

    assert "another replay of this gateway is running; wait for its end" in capsys.readouterr().err


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from gateway.archive.journal.records import Rows
from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.journal.writer import ArchiveWriter

now, durable = time.time_ns() // 1_000, threading.Event()
options = ArchiveOptions(seal_key=sys.argv[3].encode() or None)
writer = ArchiveWriter(Path(sys.argv[1]), "gateway", now, options, replay=True)
row = {"route": "orders", "leg": "delivered", "endpoint": "erp", "system": "ems", "target": "erp",
       "name": "ORDERS.2", "source_name": "orders/2", "id": bytes.fromhex(sys.argv[2]),
       "attempt": 2, "time": now, "received": now, "mode": 1, "replayed": True,
       "outcome": "accepted"}
writer.append([Rows(1, row)], durable.set)
assert durable.wait(60)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("key", [pytest.param("", id="no-key"), "the key of all the seals"])
def test_the_deliveries_of_a_killed_replay_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    """Its journal has the rows, and no process converted it."""
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        if key:
            (tmp_path / "key").write_text(key)
            own = f"archive: {{seal_key: '${{file:{tmp_path / 'key'}}}', "
            rig.file.write_text(rig.file.read_text().replace("archive: {", own))
        arguments = [str(rig.archive), rig.rows("received")[1]["id"].hex(), key]
        command = [sys.executable, "-c", KILLED, *arguments]
        killed = subprocess.run(command, check=False)  # noqa: S603  # the program above
        assert killed.returncode == -signal.SIGKILL

        assert rig.replay() == 0
        sent = [message.address for message in collect(rig.out, 2)]

    assert sent == ["ORDERS.1", "ORDERS.3"]
    assert "1 not sent again: an earlier replay delivered them" in capsys.readouterr().out


def test_a_dry_run_says_what_cannot_be_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.write(kept="false")
        rig.relay(*MESSAGES)
        assert rig.replay("--dry-run") == 1

    printed = capsys.readouterr().out
    assert "1  orders/1 -> erp: not sent: no payload: the route did not keep it" in printed
    assert "would send 0, 0 of them under another name; 3 cannot be sent" in printed


def test_a_row_without_a_payload_is_reported_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.write(kept="false")
        rig.relay(*MESSAGES)
        assert rig.replay() == 1

    output = capsys.readouterr()
    assert "0 arrived, 3 did not" in output.out
    assert output.err.count("no payload: the route did not keep it") == 3
    assert "3 messages without an archived payload cannot be sent" in output.err
    assert "gateway dead-letters replay" in output.err


def test_a_cut_payload_is_not_sent_and_redacted_values_are_omitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = Headers(properties={"card": "4711-8820-1193-5560", "region": "emea"})
    with replay_rig(tmp_path) as rig:
        rig.write(more='archive_payload_bytes: 4\n    archive_redact: ["card"]')
        rig.relay(Message("orders/1", b"long one"), Message("orders/2", b"ok", secret))
        assert rig.replay() == 1
        (again,) = collect(rig.out, 1)

    output = capsys.readouterr()
    assert "orders/1 -> erp: payload cut: 4 of 8 bytes are kept" in output.err
    assert "1 arrived, 1 did not" in output.out
    assert "1 message without redacted values" in output.out
    assert again.headers.properties == {"region": "emea"}
    files = [path.read_bytes() for path in rig.archive.rglob("*") if path.is_file()]
    assert not any(b"4711-8820-1193-5560" in content for content in files)


def test_only_messages_of_the_class_are_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        assert rig.replay("--class", "missing") == 2
        assert "run gateway reconcile --date" in capsys.readouterr().err
        rig.reconciled(missing=[rig.rows("received")[1]["id"]])
        assert rig.replay("--class", "missing") == 0
        (again,) = collect(rig.out, 1)
        assert rig.replay("--class", "refused") == 0
        assert "no message of route 'orders' is 'refused'" in capsys.readouterr().out

    assert again.address == "ORDERS.2"


def test_ids_that_are_not_found_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        rig.reconciled(missing=[rig.rows("received")[0]["id"], b"\xab" * 16])
        assert rig.replay("--class", "missing") == 1
        assert rig.out.receive(PATIENCE) is not None
        assert rig.replay("--from", "2020-01-01", "--to", "2020-01-02") == 1

    output = capsys.readouterr()
    assert "1 arrived, 0 did not" in output.out
    assert f"{'ab' * 16}: no received row" in output.err
    assert "not found: 1 of 2 messages;" in output.err
    assert "no message of route 'orders' was received then" in output.err


def test_the_whole_name_of_a_shortened_replay_is_recorded(tmp_path: Path) -> None:
    """The message was a dead letter: too long for the target, until the mapping shortened it."""
    long = f"orders/{'/'.join(['a-long-level-of-a-name'] * 14)}"
    with replay_rig(tmp_path) as rig:
        with rig.running():
            send(rig.into, Message(long, b"long"), Message("orders/1", b"short"))
            assert len(collect(rig.out, 1)) == 1
        shortening = rig.file.read_text().replace(
            'rest...}"}\n    arch', 'rest...}", on_too_long: shorten}\n    arch'
        )
        rig.file.write_text(shortening)

        assert rig.replay("--dry-run") == 1
        names = rig.archive / "_names"
        assert not any(path.read_bytes().strip() for path in names.glob("*.jsonl"))
        assert rig.replay() == 0
        (short,) = (each.address for each in collect(rig.out, 2) if "~" in each.address)

    (file,) = names.glob("*.jsonl")
    (line,) = (json.loads(each) for each in file.read_text().splitlines() if each)
    assert (line["digest"], line["levels"][0]) == (short.rpartition(".")[2], "ORDERS")
    assert len(line["levels"]) == 15


def test_a_message_with_a_short_name_is_replayed_by_its_whole_name(tmp_path: Path) -> None:
    levels = "/".join(["a-long-level-of-a-name"] * 14)
    back = """\
  back:
    from: {endpoint: erp, pattern: "ORDERS.{rest...}"}
    to: {endpoint: plant, template: "back/{rest...}"}
    archive_payload: true
archive:"""
    with replay_rig(tmp_path) as rig:
        text = rig.file.read_text().replace(
            '.{rest...}"}\n', '.{rest...}", on_too_long: shorten}\n'
        )
        rig.file.write_text(text.replace("archive:", back))
        plant = MemorySettings(name="seen", dialect="mqtt", broker=f"plant-{rig.run}")
        with opened(seen := make_source(plant, [Subscription("back/#")])):
            with rig.running():
                send(rig.into, Message(f"orders/{levels}", b"x"))
                assert [each.address for each in collect(seen, 1)] == [f"back/{levels}"]

            assert rig.replay("--route", "back") == 0

            assert [each.address for each in collect(seen, 1)] == [f"back/{levels}"]


def test_a_compacted_day_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        rig.relay(*MESSAGES)
        for day in {datetime.now(UTC).date(), rig.rows("received")[0]["time"].date()}:
            compact_day(ArchiveLocation(rig.archive), day, merged_here, lambda _: None)
        assert {path.name.split("-")[0] for path in rig.archive.glob("date=*/*/*")} == {"merged"}
        assert rig.replay("--dry-run") == 0
        assert rig.replay() == 0
        assert len(collect(rig.out, 6)) == 6

    output = capsys.readouterr().out
    assert "would send 6, 0 of them under another name; 0 cannot be sent" in output
    assert "6 arrived, 0 did not" in output


@pytest.mark.nightly
def test_an_archive_in_a_bucket_is_replayed(
    tmp_path: Path,
    bucket: Bucket,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket.start()
    with replay_rig(tmp_path) as rig:
        rig.file.write_text(
            rig.file.read_text().replace(
                f"{{path: {rig.archive}}}", f"{{path: '{bucket.url}', buffer: {tmp_path}/buffer}}"
            )
        )
        rig.relay(*MESSAGES)
        assert rig.replay(archive=bucket.url) == 0
        assert len(collect(rig.out, 3)) == 3

    assert "3 arrived, 0 did not" in capsys.readouterr().out
    convert_journals(tmp_path / "buffer", bucket.url)  # a stop leaves some on a slow machine
    found = [
        row
        for row in read_rows(open_storage(parse_location(bucket.url)), datetime.now(UTC).date())
        if row["replayed"]
    ]
    assert len(found) == 3


def test_nothing_is_sent_when_the_archive_cannot_record_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        other = ArchiveWriter(rig.archive, "gateway", 1, replay=True)
        assert rig.replay() == 2
        other.close()
        assert rig.out.receive(0) is None

    assert "arrived" not in capsys.readouterr().out


def test_deliveries_are_recorded_before_a_failed_one_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt while the failure is printed must not lose the rows of the others."""
    send_all = ReplaySender.send

    def refuse_the_first(
        self: ReplaySender, endpoint: str, messages: Sequence[Message]
    ) -> Sequence[Settlement]:
        return [RETRY, *send_all(self, endpoint, messages)[1:]]

    monkeypatch.setattr(ReplaySender, "send", refuse_the_first)
    with replay_rig(tmp_path) as rig:
        rig.relay(*MESSAGES)
        with closing(Replay(load(rig.file), "orders")) as replay:
            copy, reason = next(replay.send(rig.rows("received"), ReplayChoice()))

    assert (copy.row["name"], reason) == ("orders/1", "no answer")
    replayed = [row["source_name"] for row in rig.rows("delivered") if row["replayed"]]
    assert replayed == ["orders/2", "orders/3"]


def test_a_past_expiry_is_removed(tmp_path: Path) -> None:
    soon = int((datetime.now(UTC) + timedelta(seconds=1)).timestamp() * 1_000_000)
    with replay_rig(tmp_path) as rig:
        rig.relay(Message("orders/1", b"x", Headers(expiry=soon)))
        threading.Event().wait(max(0.0, soon / 1_000_000 - datetime.now(UTC).timestamp()))
        assert rig.replay() == 0
        (again,) = collect(rig.out, 1)

    assert again.headers.expiry is None


@pytest.mark.parametrize(
    ("options", "error_text"),
    [
        pytest.param(["--from", "noon"], "--from: 'noon' is no time", id="time"),
        pytest.param(["--to", "2020-01-01"], "is not after --from", id="backwards"),
        pytest.param(["--route", "other"], "no route 'other' in the configuration", id="route"),
    ],
)
def test_a_wrong_argument_gives_exit_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], error_text: str
) -> None:
    rig = ReplayRig(tmp_path)
    rig.archive.mkdir()

    assert rig.replay(*options) == 2
    assert error_text in capsys.readouterr().err


def test_a_missing_or_damaged_archive_gives_exit_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = ReplayRig(tmp_path)
    assert rig.replay() == 2
    assert "is not a folder" in capsys.readouterr().err
    archive(rig.archive, received([1], time=int(datetime.now(UTC).timestamp()) * 1_000_000))
    (segment,) = rig.archive.glob("date=*/*/*")
    segment.write_bytes(segment.read_bytes()[:100])

    assert rig.replay() == 2
    assert "is damaged, or no segment" in capsys.readouterr().err


def test_a_range_selects_by_time_of_receipt_and_route(tmp_path: Path) -> None:
    archive(
        tmp_path,
        received([1], time=NOON - 1),
        received([2, 3], time=NOON),
        received([4], time=NOON + 1),
        received([5], time=NOON, route="other"),
    )

    rows = received_rows(LocalStorage(tmp_path), ReplayRange("orders", NOON, NOON + 1))

    assert [row["name"] for row in rows] == ["a/b2", "a/b3"]
    assert [day for day, _ in ReplayRange("orders", NOON, NOON + 1).days()] == [DAY]
