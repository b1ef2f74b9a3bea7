"""The dictionary of short names on disk."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.archive import name_store
from gateway.archive.name_store import NameStore
from gateway.errors import ArchiveError
from gateway.translate.shorten import ShortNamesInMemory

LEVELS = ("größe", "a.b", "")


def remember(root: Path, gateway: str, *digests: str, levels: tuple[str, ...] = LEVELS) -> None:
    store = NameStore(root, gateway)
    for digest in digests:
        store.remember(digest, levels)
    store.commit()
    store.close()


def recalled(root: Path, *digests: str, gateway: str = "one") -> list[tuple[str, ...] | None]:
    store = NameStore(root, gateway)
    try:
        return [store.recall(digest) for digest in digests]
    finally:
        store.close()


def index(root: Path) -> Path:
    (path,) = (root / "_names").glob(".*.index")
    return path


def test_names_of_all_gateways_are_known_after_a_start(tmp_path: Path) -> None:
    remember(tmp_path, "one", "~a")
    remember(tmp_path, "two", "~b")

    assert recalled(tmp_path, "~a", "~b", "~c") == [LEVELS, LEVELS, None]


def test_a_name_is_written_once(tmp_path: Path) -> None:
    remember(tmp_path, "one", "~a", "~a")
    remember(tmp_path, "one", "~a")

    lines = (tmp_path / "_names" / "one.jsonl").read_text().splitlines()
    assert [json.loads(line)["digest"] for line in lines if line[:1] == "{"] == ["~a"]


def test_a_name_is_known_before_it_is_durable(tmp_path: Path) -> None:
    store = NameStore(tmp_path, "one")
    store.remember("~a", LEVELS)

    assert store.recall("~a") == LEVELS
    store.close()
    assert recalled(tmp_path, "~a") == [None]


def test_a_torn_line_is_ignored_and_the_file_stays_usable(tmp_path: Path) -> None:
    remember(tmp_path, "one", "~a")
    file = tmp_path / "_names" / "one.jsonl"
    file.write_bytes(file.read_bytes() + b'{"digest": "~b", "lev')

    remember(tmp_path, "one", "~c")

    assert recalled(tmp_path, "~a", "~b", "~c") == [LEVELS, None, LEVELS]


def test_the_rest_of_a_line_that_was_being_written_is_read_later(tmp_path: Path) -> None:
    remember(tmp_path, "two", "~a")
    line = json.dumps({"digest": "~b", "levels": ["x"], "time": 1}).encode()
    file = tmp_path / "_names" / "two.jsonl"
    with file.open("ab") as names:
        names.write(line[:9])
    assert recalled(tmp_path, "~b") == [None]
    with file.open("ab") as names:
        names.write(line[9:] + b"\n")

    assert recalled(tmp_path, "~a", "~b") == [LEVELS, ("x",)]


@pytest.mark.parametrize("damage", ["absent", "damaged", "too-long"])
def test_an_index_that_cannot_be_used_is_made_again(tmp_path: Path, damage: str) -> None:
    remember(tmp_path, "one", *(f"~{number}" for number in range(100)))
    if damage == "absent":
        index(tmp_path).unlink()
    elif damage == "damaged":
        index(tmp_path).write_bytes(b"no database" * 1_000)
    else:  # the name file is an older one
        file = tmp_path / "_names" / "one.jsonl"
        file.write_bytes(b'{"digest": "~new", "levels": ["n"], "time": 1}\n')
        assert recalled(tmp_path, "~new") == [("n",)]
        return

    assert recalled(tmp_path, "~0", "~99") == [LEVELS, LEVELS]


def test_names_in_the_file_but_not_in_the_index_are_indexed(tmp_path: Path) -> None:
    remember(tmp_path, "one", "~a")
    before = index(tmp_path).read_bytes()
    remember(tmp_path, "one", "~b")
    index(tmp_path).write_bytes(before)  # a power failure lost the last commit

    assert recalled(tmp_path, "~a", "~b") == [LEVELS, LEVELS]


def test_a_name_file_whose_lines_have_moved_is_indexed_again(tmp_path: Path) -> None:
    digests = [f"~{number}" for number in range(10)]
    store = NameStore(tmp_path, "one")
    for digest in digests:
        store.remember(digest, (digest, "x"))
    store.commit()
    file = tmp_path / "_names" / "one.jsonl"
    file.write_text("\n".join(reversed(file.read_text().splitlines())) + "\n")  # of equal size

    assert [store.recall(each) for each in digests] == [(each, "x") for each in digests]
    store.close()


def test_the_index_takes_little_room_beside_long_names(tmp_path: Path) -> None:
    store = NameStore(tmp_path, "one")
    for number in range(100):
        store.remember(f"~{number}", (f"{number}" + "n" * 60_000,))
        store.commit()

    sizes = [file.stat().st_size for file in (tmp_path / "_names").glob(".one.index*")]
    assert sum(sizes) < 1_000_000, "6,000,000 bytes of names are written once"
    assert store.recall("~7") == ("7" + "n" * 60_000,)
    store.close()


@contextmanager
def held_index(root: Path) -> Iterator[None]:
    """Hold the index as another program would."""
    other = sqlite3.connect(index(root), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.close()


def test_names_are_durable_and_known_while_the_index_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(name_store, "LOCK_TIMEOUT", 0.01)
    store = NameStore(tmp_path, "one")
    with held_index(tmp_path):
        for digest in ("~a", "~b"):
            store.remember(digest, LEVELS)
            store.commit()
        assert (tmp_path / "_names" / "one.jsonl").read_text().count("digest") == 2
        assert store.recall("~a") == LEVELS
        assert caplog.text.count("names are kept in memory until it can be used") == 1
    caplog.clear()
    store.remember("~c", LEVELS)
    store.commit()
    assert "works again" in caplog.text
    caplog.clear()
    store.remember("~a", LEVELS)
    store.commit()
    assert not caplog.text
    store.close()

    assert (tmp_path / "_names" / "one.jsonl").read_text().count("digest") == 3
    assert recalled(tmp_path, "~a", "~b", "~c") == [LEVELS] * 3


@pytest.mark.parametrize("again", [False, True], ids=["running", "after-a-start"])
def test_the_names_of_a_replay_that_indexed_none_are_known_to_its_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    """Both write the name file; the replay is killed when its names are durable."""
    monkeypatch.setattr(name_store, "LOCK_TIMEOUT", 0.01)
    gateway, replay = NameStore(tmp_path, "one"), NameStore(tmp_path, "one")
    with held_index(tmp_path):
        replay.remember("~a", LEVELS)
        replay.commit()
    replay.close()

    gateway.remember("~b", LEVELS)
    gateway.commit()

    if again:
        gateway.close()
        gateway = NameStore(tmp_path, "one")
    assert [gateway.recall(each) for each in ("~a", "~b")] == [LEVELS, LEVELS]
    gateway.close()


def test_names_without_an_index_take_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_store, "LOCK_TIMEOUT", 0.01)
    monkeypatch.setattr(name_store, "MAX_UNINDEXED", 1_000)
    store = NameStore(tmp_path, "one")
    with held_index(tmp_path):
        store.remember("~a", ("x" * 1_000,))
        store.commit()
        store.remember("~b", LEVELS)
        for _ in range(3):
            with pytest.raises(ArchiveError, match="no program holds the file"):
                store.commit()
        assert (tmp_path / "_names" / "one.jsonl").read_text().count("digest") == 1
    store.commit()
    store.close()

    assert recalled(tmp_path, "~a", "~b") == [("x" * 1_000,), LEVELS]


def test_an_index_that_is_damaged_while_it_is_open_is_made_again(tmp_path: Path) -> None:
    remember(tmp_path, "one", *(f"~{number}" for number in range(100)))
    store = NameStore(tmp_path, "one")
    for file in (tmp_path / "_names").glob(".one.index*"):
        file.write_bytes(b"no database" * 10_000)

    store.remember("~new", LEVELS)
    store.commit()

    assert [store.recall(each) for each in ("~0", "~new", "~none")] == [LEVELS, LEVELS, None]
    store.close()


def test_many_long_names_take_little_memory(tmp_path: Path) -> None:
    """The names of a start take 60 MB on disk, and those that follow 12 MB."""
    folder = tmp_path / "_names"
    folder.mkdir()
    with (folder / "two.jsonl").open("w") as file:
        for number in range(1_000):
            entry = {"digest": f"~{number}", "levels": ["x" * 60_000], "time": 1}
            file.write(json.dumps(entry) + "\n")
    dictionary = ShortNamesInMemory()
    tracemalloc.start()
    try:
        store = NameStore(tmp_path, "one")
        dictionary.move_to(store)
        for number in range(200):
            dictionary.remember(f"~more-{number}", ("y" * 60_000,))
            if number % 10 == 9:  # the names of a batch
                dictionary.commit()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert dictionary.recall("~999") == ("x" * 60_000,)
    assert dictionary.recall("~more-0") == ("y" * 60_000,)
    store.close()

    assert peak < 4_000_000


def test_names_in_memory_move_to_the_store(tmp_path: Path) -> None:
    old, new = ShortNamesInMemory(), ShortNamesInMemory()
    old.remember("~a", LEVELS)
    store = NameStore(tmp_path, "one")
    old.move_to(store)
    new.remember("~b", LEVELS)
    new.take_over(old)
    new.remember("~c", LEVELS)
    new.commit()
    store.close()

    assert recalled(tmp_path, "~a", "~b", "~c") == [LEVELS] * 3


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ArchiveError, match="cannot be written"):
        NameStore(tmp_path / "file", "one")


def test_two_instances_never_share_a_name_file_and_read_both(tmp_path: Path) -> None:
    one, other = NameStore(tmp_path, "edge@a"), NameStore(tmp_path, "edge@b")
    for number, store in enumerate((one, other)):
        store.remember(f"digest{number}", (f"level{number}",))
        store.commit()
        store.close()

    assert sorted(path.name for path in (tmp_path / "_names").glob("*.jsonl")) == [
        "edge@a.jsonl", "edge@b.jsonl",
    ]  # fmt: skip
    after = NameStore(tmp_path, "edge@a")
    assert after.recall("digest1") == ("level1",)
    after.close()
