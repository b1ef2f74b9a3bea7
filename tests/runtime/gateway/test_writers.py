"""The writer of a gateway in its archive: its instance, and the lease under which it writes."""

from __future__ import annotations

from pathlib import Path

from gateway.archive.gaps import merge_gaps
from gateway.archive.heads import read_heads
from gateway.archive.signed_json import Term
from gateway.archive.storage import LocalStorage
from gateway.cli.live.lease import open_lease
from gateway.config.load import load
from gateway.night.archive.seals.seal import Seal
from gateway.night.archive.seals.store import read_seals, seal_days
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.archived import archived
from tests.runtime.gateway.running import wait_until_connected
from tests.waiting import until

CONFIG = """\
gateway: {{name: plant-1, instance: {instance}}}
standby: {{lease: {{kind: file, path: {folder}/lease}}, seconds: 5}}
archive: {{path: {folder}/archive}}
endpoints:
  plant: {plant}
  erp: {{kind: memory}}
routes:
  orders:
    from: {{endpoint: plant, pattern: a/b}}
    to: {{endpoint: erp, template: c/d}}
"""


def run_once(folder: Path, instance: str, plant: str = "{kind: memory}") -> int:
    """Let an instance take the lease, run, and give it away; return the number of the lease."""
    file = folder / f"{instance}.yaml"
    file.write_text(CONFIG.format(folder=folder, instance=instance, plant=plant))
    configuration = load(file)
    lease = open_lease(configuration)
    assert lease is not None
    lease.start()
    until(lease.holds, "the instance takes the lease")
    gateway = Gateway(configuration, lease)
    gateway.start()
    wait_until_connected(gateway)
    gateway.stop(5)
    lease.give()
    return lease.number


def test_journals_and_heads_state_the_lease_of_their_instance(tmp_path: Path) -> None:
    numbers = [run_once(tmp_path, instance) for instance in ("b", "a")]
    storage = LocalStorage(tmp_path / "archive")

    heads = {each.head.instance: each.head for each in read_heads(storage) if each.head}
    assert [heads[name].lease.number for name in ("b", "a")] == numbers == sorted(numbers)
    stored = [each.seal for day in seal_days(storage) for each in read_seals(storage, day)]
    seals = {each.writer: each for each in stored if isinstance(each, Seal)}
    assert sorted(seals) == ["plant-1@a", "plant-1@b"]
    for name in ("a", "b"):
        seal = seals[f"plant-1@{name}"]
        assert seal.lease == heads[name].lease == Term(heads[name].lease.number, seal.start, 5)


def test_the_gap_of_a_takeover_begins_where_the_last_holder_stopped(tmp_path: Path) -> None:
    with Yami4Broker("unix://yami"):
        for instance in ("b", "a", "b"):
            run_once(tmp_path, instance, '{kind: yami4, url: "unix://yami"}')
    gaps = merge_gaps(row for row in archived(tmp_path) if row["leg"] == "gap")

    times = [time for gap in gaps for time in (gap.begin, gap.end)]
    assert len(gaps) == 3  # the last one has not ended
    assert times == sorted(times)
    assert all(gap.begin < gap.end for gap in gaps[:2])
