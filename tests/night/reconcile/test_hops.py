"""`gateway reconcile --hops`: messages between three gateways, in the report and in tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway.archive.routes import write_routes
from gateway.cli import main
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job
from gateway.night.reconcile.nights.run import run_night
from gateway.night.reconcile.report.headline import headline
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.summary import from_json
from tests.archive.samples import DAY, NOON, digest, identity
from tests.night.reconcile.hop_chain import CLOSED, HOUR, SECOND, Chain

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def run(root: Path) -> int:
    summary = str(root.with_name("summary.json"))
    return main(["reconcile", str(root), "--date", str(DAY), "--hops", "--json", summary])


@pytest.mark.nightly
def test_messages_in_flight_between_gateways_are_judged_again_and_losses_break_the_verdict(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean, faulty = tmp_path / "clean", tmp_path / "faulty"
    chain = Chain()
    for number in range(1, 5):
        chain.message(number, NOON + number * SECOND)
    chain.relay("plant", 9, CLOSED - SECOND)  # the receipt is not in the archive yet
    chain.write(clean, through_writer=True)
    night = run_night(open_archive(clean), Job(hops=True, now=CLOSED + 24 * HOUR), lambda *_: None)
    assert (night.report.status, night.report.total("in flight")) == (0, 0)
    assert headline(night.report).endswith("; between gateways 1 in flight")
    (record,) = night.link.dates
    assert (record.in_flight, record.settled) == (1, False)
    del chain.rows["plant"][-2:]

    chain.relay("plant", 5, NOON)  # lost in the bus
    chain.relay("plant", 6, NOON)
    for gateway in ("core", "office"):
        chain.relay(gateway, 6, NOON + 10_000, hash=digest("forged"))
    chain.write(faulty, through_writer=True)
    write_routes(faulty, "core", [], CLOSED + 60 * 24 * HOUR)  # long after the date
    assert run(faulty) == 1

    out = capsys.readouterr().out
    lost = f"{identity(5).hex()} plant/up -> core/across 'bus/n5'"
    assert f"missing between gateways: {lost}" in out
    assert "\nverdict: not clean: 2 missing between gateways, 1 error in the archive\n" in out
    told = "1 message between gateways on a publisher's word"
    assert f"between gateways 2 missing; {told}\n" in out
    assert f"unproven between gateways: {identity(6).hex()} plant/up -> core/across" in out
    assert "\nmissing between gateways 2\nsource gaps 0\n" in out
    assert "\nmissing 0\n" in out
    text = (tmp_path / "summary.json").read_text()
    summary = json.loads(text)
    worst = summary["hops"][0]
    ends = ("gateway", "route", "target", "broker", "receiver", "receiver_route")
    assert tuple(worst[name] for name in ends) == ("plant", "up", "bus", "bus", "core", "across")
    assert (worst["expected"], worst["missing"], worst["delivered"]) == (6, 2, 4)
    assert page(from_json(text)).count("core/</code><wbr><code>across") > 1

    results = f"{faulty}/_reconciled/date={DAY}"
    rows = spark.read.parquet(f"{results}/hop_exceptions").collect()
    assert {(row["class"], row["receiver"], row["id"]) for row in rows} >= {
        ("missing", "core", identity(5).hex())
    }
    counts = spark.read.parquet(f"{results}/hops").selectExpr("sum(expected)", "sum(in_gap)")
    assert tuple(counts.first() or ()) == (11, 0)
