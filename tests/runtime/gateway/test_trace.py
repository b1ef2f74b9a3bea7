"""The trace of a message: one id on its way over several gateways."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import open_storage
from gateway.cli import main
from gateway.clock import now, today
from gateway.model.message import GATEWAY_ID, Headers, Message
from gateway.night.reconcile.classify.hop_events import HopScope, run_events
from gateway.night.reconcile.classify.hops import hop_table, judge
from gateway.night.reconcile.input.hop_routes import find_hops
from gateway.night.reconcile.input.inputs import list_inputs
from gateway.night.reconcile.input.route_history import read_history
from tests.runtime.gateway.running import BrokerClient, archive_rows, running

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
SAME = "{rest...}"
CHAIN = (("plant", "mqtt"), ("ems", "ems"), ("sensors", "yami4"), ("ems2", "ems"))


def gateway_at(number: int) -> str:
    """The configuration of a gateway of the chain; all gateways share one archive."""
    (source, source_dialect), (target, target_dialect) = CHAIN[number : number + 2]
    return f"""\
gateway: {{name: gateway-{number}}}
endpoints:
  in: {{kind: memory, dialect: {source_dialect}, broker: {source}, broker_id: {source}}}
  out: {{kind: memory, dialect: {target_dialect}, broker: {target}, broker_id: {target}}}
archive: {{path: archive}}
routes:
  hop:
    from: {{endpoint: in, pattern: "{SAME}"}}
    to: {{endpoint: out, template: "{SAME}", add_message_id: true}}
"""


def relay(plant: BrokerClient, last: BrokerClient, *messages: Message) -> list[Message]:
    """Send `messages` over three gateways, and return them as they arrive at the last broker."""
    with running(gateway_at(0)), running(gateway_at(1)), running(gateway_at(2)):
        plant.publish(*messages)
        return last.receive(len(messages))


def path(identity: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Gateway and leg of each row that `gateway archive show` prints."""
    assert main(["archive", "show", str(Path("archive")), identity]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    return [(words[1], words[3]) for words in (line.split("  ") for line in lines)]


def joined() -> list[tuple[object, ...]]:
    """Sender, broker, receiver, and the messages expected and received, as a night joins them."""
    location = ArchiveLocation(Path("archive").absolute())
    history, findings = read_history(open_storage(location), now(), None)
    hops, notes = find_hops(location, history)
    assert not [*findings, *notes]
    assert all(each.exact for each in hops.brokers.values())
    scope = HopScope(hops, (0, 1 << 62), 0)
    segments = list_inputs(open_storage(location), today()).day
    events = pa.concat_tables(run_events(scope, segments))
    rows = hop_table(pa.concat_tables(judge(1 << 62, events)))
    found = rows.select(["gateway", "broker", "receiver", "expected", "delivered"]).to_pylist()
    return [tuple(row.values()) for row in found]


@pytest.mark.usefixtures("ems", "sensors")
def test_a_message_is_followed_over_three_gateways_by_any_of_its_ids(
    plant: BrokerClient, last: BrokerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    arrived, other = relay(plant, last, Message("a/b", b"1"), Message("a/c", b"2"))

    whole = [(f"gateway-{n}", leg) for n in range(3) for leg in ("received", "delivered")]
    rows = [row for row in archive_rows() if str(row["name"]).endswith("b")]
    first = next(row["id"] for row in rows if row["gateway"] == "gateway-0")
    assert isinstance(first, bytes)
    assert [row["trace"] or row["id"] for row in rows] == [first] * 6
    assert [row["trace"] for row in rows if row["gateway"] == "gateway-0"] == [None, None]
    ids = {row["id"].hex() for row in rows if isinstance(row["id"], bytes)}
    assert len(ids) == 3
    given = {str(row["origin_id"]) for row in rows if row["origin_id"]}
    for identity in (*ids, *given):
        assert path(identity, capsys) == whole
    copy = str(arrived.headers.properties[GATEWAY_ID])
    assert copy != other.headers.properties[GATEWAY_ID]
    assert arrived.headers.properties["gateway_trace"] == first.hex()
    assert joined() == [
        ("gateway-0", "ems", "gateway-1", 2, 2),
        ("gateway-1", "sensors", "gateway-2", 2, 2),
    ]


@pytest.mark.usefixtures("ems", "sensors")
def test_the_trace_of_a_publisher_is_that_of_its_messages(
    plant: BrokerClient, last: BrokerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    traced = Headers(properties={"traceparent": PARENT})
    invalid = Headers(properties={"traceparent": "00-0-0-01", "gateway_trace": "\u0664" * 32})

    relay(plant, last, Message("a/b", b"1", traced), Message("a/c", b"2", invalid))

    rows = archive_rows()
    assert {row["trace"] for row in rows if str(row["name"]).endswith("b")} == {
        bytes.fromhex(TRACE)
    }
    assert len(path(TRACE, capsys)) == 6
    first = next(row for row in rows if row["name"] == "a/c")
    assert first["trace"] is None
    assert {row["trace"] or row["id"] for row in rows if str(row["name"]).endswith("c")} == {
        first["id"]
    }
