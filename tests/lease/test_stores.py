"""Every store of leases keeps the same rules."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gateway.lease.file_store import FileLeaseStore
from gateway.lease.kubernetes_store import MAX_MEMORY, MEMORY, ApiServer, KubernetesLeaseStore
from gateway.lease.lease import NO_RECORD, LeaseError, LeaseStore, Record
from tests.lease.kubernetes_api import LeaseApi, lease_api

MakeStore = Callable[[], LeaseStore]


@pytest.fixture(params=["file", "kubernetes"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Make stores of one lease: each instance has its own."""
    if request.param == "file":
        yield partial(FileLeaseStore, tmp_path / "lease")
        return
    with lease_api(tmp_path) as (_, server):
        yield partial(KubernetesLeaseStore, server, "plant-1", 10.0)


def taken(store: LeaseStore, instance: str = "a") -> Record:
    record = store.take(store.look(), instance)
    assert record is not None
    return record


def test_a_lease_that_nobody_made_is_free(make_store: MakeStore) -> None:
    assert make_store().look("a") == NO_RECORD or make_store().look("a").given


def test_a_lease_is_taken_once(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    seen = b.look()
    assert taken(a).number == 1
    assert b.take(seen, "b") is None
    assert (b.look().number, b.look().holder) == (1, "a")


def test_one_of_many_takes_it(make_store: MakeStore) -> None:
    seen = make_store().look()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: make_store().take(seen, name), "abcdefgh"))
    (record,) = [each for each in found if each is not None]
    assert make_store().look().holder == record.holder


def test_each_renewal_changes_the_record(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    taken(a)
    seen = {b.look().renewal}
    for _ in range(5):
        record = a.renew(1, "a")
        assert (record.number, record.holder) == (1, "a")
        seen.add(b.look().renewal)
    assert len(seen) == 6


def test_a_renewed_lease_is_not_taken_by_an_old_look(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    taken(a)
    seen = b.look()
    a.renew(1, "a")
    assert b.take(seen, "b") is None
    assert not b.look().given
    assert a.renew(1, "a").number == 1  # a standby that was frozen or cut off ends no lease


def test_a_lease_that_was_taken_is_not_renewed(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    taken(a)
    taken(b, "b")
    assert a.renew(1, "a").holder == "b"
    assert (b.look().number, b.look().holder) == (2, "b")


def test_a_given_lease_says_so(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    taken(a)
    assert not b.look().given
    a.give(1, "a")
    assert b.look().given
    record = taken(b, "b")
    assert (record.number, b.look().given) == (2, False)
    a.give(1, "a")  # late: it concerns the old number only
    assert not b.look().given


def test_a_standby_is_seen_by_the_holder(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    taken(a)
    seen = {b.look("b").standby.get("b")} | {a.renew(1, "a").standby["b"]}
    for _ in range(3):
        b.look("b")
    assert a.renew(1, "a").standby["b"] not in seen


def test_a_standby_that_was_started_again_is_another_one(make_store: MakeStore) -> None:
    """The pid in a container is always 1."""
    a = make_store()
    taken(a)
    make_store().look("b")
    before = a.renew(1, "a").standby["b"]
    make_store().look("b")
    assert a.renew(1, "a").standby["b"] != before


def test_a_wish_reaches_the_holder(make_store: MakeStore) -> None:
    a, b = make_store(), make_store()
    taken(a)
    assert a.renew(1, "a").wanted == 0
    b.want(1)
    assert a.renew(1, "a").wanted == 1


def test_a_memory_is_that_of_the_last_holder(make_store: MakeStore) -> None:
    """A holder that was frozen, or slow, changes nothing of the next one."""
    a, b = make_store(), make_store()
    taken(a)
    assert b.read_memory() is None
    a.write_memory(1, "a", "first")
    assert b.read_memory() == "first"
    taken(b, "b")
    assert b.read_memory() == "first"
    b.write_memory(2, "b", "second \N{SNOWMAN}")
    a.write_memory(1, "a", "late")

    assert a.read_memory() == b.read_memory() == "second \N{SNOWMAN}"
    assert b.renew(2, "b").number == 2
    assert b.read_memory() == "second \N{SNOWMAN}"


def test_a_memory_that_the_api_server_does_not_take_is_damaged(tmp_path: Path) -> None:
    """An earlier one would say that less was received."""
    with lease_api(tmp_path) as (api, server):
        store = KubernetesLeaseStore(server, "plant-1", 10.0)
        taken(store)
        store.write_memory(1, "a", "first")
        text = os.urandom(MAX_MEMORY).hex()
        with pytest.raises(LeaseError, match="more than 200000"):
            store.write_memory(1, "a", text)
        with pytest.raises(LeaseError, match=MEMORY):
            store.read_memory()

        store.write_memory(1, "a", "small again")
        assert store.read_memory() == "small again"
        api.leases["plant-1"]["metadata"]["annotations"][MEMORY] = "no base64!"
        with pytest.raises(LeaseError, match=MEMORY):
            store.read_memory()


class Interrupted(FileLeaseStore):
    """Another instance does something after the look of each call, once."""

    between: Callable[[], object] = staticmethod(lambda: None)

    def _last(self) -> Record:
        record = super()._last()
        self.between, call = staticmethod(lambda: None), self.between
        call()
        return record


def test_a_takeover_between_the_look_and_the_write_of_a_renewal_counts(tmp_path: Path) -> None:
    a, b = Interrupted(tmp_path), FileLeaseStore(tmp_path)
    taken(a)
    seen = b.look()
    a.between = staticmethod(lambda: b.take(seen, "b"))
    assert a.renew(1, "a").number == 2
    assert (b.look().number, b.look().holder) == (2, "b")


def test_a_renewal_between_the_look_and_the_file_of_a_takeover_leaves_no_holder(
    tmp_path: Path,
) -> None:
    a, b = FileLeaseStore(tmp_path), Interrupted(tmp_path)
    taken(a)
    seen = b.look()
    b.between = staticmethod(lambda: a.renew(1, "a"))
    assert b.take(seen, "b") is None
    assert (b.look().number, b.look().holder, b.look().given) == (2, "", False)
    assert a.renew(1, "a").number == 2


def test_an_instance_that_slept_through_many_numbers_takes_none(tmp_path: Path) -> None:
    a, b = FileLeaseStore(tmp_path), FileLeaseStore(tmp_path)
    seen = taken(a)
    for _ in range(150):
        seen = taken(b, "b")
    assert len([path for path in tmp_path.iterdir() if path.name.isdecimal()]) <= 101
    assert a.take(Record(1, "a"), "a") is None
    assert b.look().number == seen.number


def test_a_half_written_file_is_held_by_nobody_and_not_free(tmp_path: Path) -> None:
    store = FileLeaseStore(tmp_path)
    identity = taken(store).identity
    for text in ("", '{"holder": "a', "[1]", "\0" * 512):
        (tmp_path / f"{1:012}").write_text(text)
        assert store.look() == replace(NO_RECORD, number=1, given=False, identity=identity)


def test_a_folder_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lease").write_text("")
    with pytest.raises(LeaseError, match=re.escape(str(tmp_path / "lease"))):
        FileLeaseStore(tmp_path / "lease").look("a")


def test_an_absent_file_system_has_no_lease(tmp_path: Path) -> None:
    store = FileLeaseStore(tmp_path / "plant-1" / "lease")
    with pytest.raises(LeaseError, match="plant-1/lease: the folder around it is absent"):
        store.look("a")
    with pytest.raises(LeaseError, match="mounted"):
        store.take(NO_RECORD, "a")
    assert not (tmp_path / "plant-1").exists()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[tuple[LeaseApi, ApiServer]]:
    with lease_api(tmp_path) as both:
        yield both


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (403, "lease plant-1: 403: not allowed; its role needs get, create, update and patch"),
        (401, "lease plant-1: 401: its token was refused; see the service account of the pod"),
        (503, "lease plant-1: 503: Service Unavailable"),
        (520, "lease plant-1: 520: "),  # of a proxy: no standard has it
    ],
)
def test_a_refusal_is_explained(api: tuple[LeaseApi, ApiServer], status: int, text: str) -> None:
    api[0].refusing = status
    with pytest.raises(LeaseError, match=re.escape(text)):
        KubernetesLeaseStore(api[1], "plant-1", 10.0).look("a")


def test_an_api_server_that_is_away_is_an_error(api: tuple[LeaseApi, ApiServer]) -> None:
    server = replace(api[1], url="http://127.0.0.1:1")
    with pytest.raises(LeaseError, match=r"http://127\.0\.0\.1:1: "):
        KubernetesLeaseStore(server, "plant-1", 10.0).look("a")


def test_an_answer_that_ends_in_the_middle_is_an_error(api: tuple[LeaseApi, ApiServer]) -> None:
    """A load balancer that restarts does this; the holder's thread must live on."""
    store = KubernetesLeaseStore(api[1], "plant-1", 10.0)
    assert taken(store).holder == "a"
    api[0].breaks = True
    with pytest.raises(LeaseError, match=r"http://127\.0\.0\.1:\d+: "):
        store.renew(1, "a")


def test_an_account_that_cannot_be_read_is_an_error(
    api: tuple[LeaseApi, ApiServer], tmp_path: Path
) -> None:
    (tmp_path / "namespace").unlink()
    with pytest.raises(LeaseError, match="namespace"):
        KubernetesLeaseStore(api[1], "plant-1", 10.0).look("a")


def test_outside_a_pod_there_is_no_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(LeaseError, match="use `kind: file`"):
        ApiServer.of_pod()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    assert ApiServer.of_pod().url == "https://[fd00::1]:6443"


def test_a_record_that_cannot_be_read_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "lease" / "handover").mkdir(parents=True)
    (tmp_path / "lease" / "000000000001").touch()
    store, before = FileLeaseStore(tmp_path / "lease"), len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(10):
        with pytest.raises(LeaseError, match="directory"):
            store.look()

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_pipes_in_the_folder_are_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "lease"
    a, b = FileLeaseStore(folder), FileLeaseStore(folder)
    taken(a)
    for name in ("handover", "x.standby", "000000000007"):
        os.mkfifo(folder / name)
    assert a.renew(1, "a").number == 1
    assert b.look("b").holder == "a"
    os.mkfifo(folder / "c.standby")
    with pytest.raises(LeaseError, match="lease"):
        b.look("c")


def test_a_number_that_nobody_can_follow_is_an_error_that_names_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "lease"
    a = FileLeaseStore(folder)
    taken(a)
    (folder / "999999999999").write_text("{}")
    for ask in (partial(a.renew, 1, "a"), a.look):
        with pytest.raises(LeaseError, match="nobody can follow the file 999999999999; remove it"):
            ask()


def test_the_folder_is_closed_to_other_users(tmp_path: Path) -> None:
    taken(FileLeaseStore(tmp_path / "lease"))
    assert (tmp_path / "lease").stat().st_mode & 0o777 == 0o750
