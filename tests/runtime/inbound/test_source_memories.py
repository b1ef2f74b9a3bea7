"""The memories of sources: read again, renamed, damaged, and not writable; in a pair, its lease."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from gateway.endpoints.source_memory import NO_TEXTS, SourceMemory, read_count, read_texts
from gateway.lease.file_store import FileLeaseStore
from gateway.lease.holder import LeaseHolder
from gateway.runtime.inbound.source_memories import MemoryFile, SourceMemories
from tests.waiting import until

ROLES = ("mqtt a", "mqtt b", "nats c")


def memory(file: Path, role: str = "mqtt a") -> SourceMemory:
    """Return the memory of a role as a process has it that starts now."""
    found = SourceMemory()
    found.keep_in(memories(file, *ROLES), role)
    return found


def memories(file: Path, *roles: str) -> SourceMemories:
    """Return the memories of a gateway that starts now, with sources of these roles."""
    found = SourceMemories(MemoryFile(file))
    found.use_roles(roles, roles)
    return found


def test_another_process_reads_what_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "journals" / "g.memory"
    memory(file).put("filters", ["b/#", "a"])
    memory(file, "nats c").put("number", 7)

    assert memory(file).get("filters", read_texts, NO_TEXTS) == ["b/#", "a"]
    assert memory(file, "nats c").get("number", read_count, 0) == 7
    assert memory(file, "mqtt b").get("filters", read_texts, NO_TEXTS) == NO_TEXTS
    assert file.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[1]",
        '{"a": 1}',
        '{"crc32": 0, "memories": {}}',
        '{"crc32": 0, "memories": []}',
        '{"crc32": 0, "memories": {"mqtt a": 1}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    file = tmp_path / "g.memory"
    file.write_text(text)

    assert memory(file).get("filters", read_texts, NO_TEXTS) is None
    assert "is damaged" in caplog.messages[0]
    assert "may stay at a broker" in caplog.messages[0]
    memory(file).put("filters", ["b"])
    assert memory(file).get("filters", read_texts, NO_TEXTS) == ["b"]


@pytest.mark.parametrize("value", ["7", -2, 1 << 64, None, [], {"a": 1}, 1.5])
def test_a_damaged_fact_is_not_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    file = tmp_path / "g.memory"
    memory(file).put("number", value)

    assert memory(file).get("number", read_count, 0) is None
    assert "the memory of mqtt a is damaged" in caplog.text


def test_a_changed_digit_is_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "g.memory"
    memory(file).put("number", 17)
    file.write_text(file.read_text().replace("17", "18"))

    assert memory(file).get("number", read_count, 0) is None
    assert "its checksum does not fit" in caplog.text


def test_a_renamed_endpoint_without_its_earlier_name_knows_nothing_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "g.memory"
    memory(file, "mqtt old").put("number", 7)

    assert memory(file, "mqtt a").get("number", read_count, 0) is None
    assert "those that left the configuration are old" in caplog.text
    assert "write `was: NAME`" in caplog.text
    caplog.clear()
    assert memory(file, "nats c").get("number", read_count, 0) == 0, "of another kind"
    assert not caplog.text


def renamed(file: Path, was: str = "mqtt old") -> SourceMemories:
    """Return the memories of a start with an endpoint `new` whose `was` is that of the role."""
    found = SourceMemories(MemoryFile(file))
    found.use_roles([was], [was], {was: "mqtt new"})
    return found


def test_a_mistyped_earlier_name_is_told_with_the_names_that_there_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "g.memory"
    memory(file, "mqtt plant").put("number", 7)
    memories(file).save("nats hub", {"number": 8})

    renamed(file, "mqtt palnt").load("mqtt palnt")

    (text,) = caplog.messages
    assert text.startswith("endpoint new: `was: palnt` names no endpoint that this gateway rem")
    assert "did you mean 'plant'? (it remembers hub, plant)" in text


def test_a_first_start_has_no_earlier_name_to_compare(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert renamed(tmp_path / "g.memory").load("mqtt old") == {}
    assert not caplog.messages


def test_an_earlier_name_that_is_told_late_repeats_until_it_was_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "g.memory"
    memories(file, "mqtt old").save("mqtt old", {"number": 7})
    memories(file, "mqtt new").save("mqtt new", {"number": 8})

    def started(doubts: bool) -> SourceMemory:
        caplog.clear()
        found = SourceMemory()
        found.keep_in(renamed(file), "mqtt old")
        assert found.get("number", read_count, 0) == 7
        assert found.may_repeat is doubts
        return found

    started(doubts=True)
    assert "goes on as old, and was read under another name" in caplog.text
    started(doubts=True).note_repeated()
    started(doubts=False)
    assert not caplog.messages
    memories(file, "mqtt new").save("mqtt new", {"number": 9})
    started(doubts=True)


def test_an_earlier_name_that_was_mistyped_first_repeats_what_was_read_meanwhile(
    tmp_path: Path,
) -> None:
    file = tmp_path / "g.memory"
    memories(file, "mqtt old").save("mqtt old", {"number": 7})
    renamed(file, "mqtt odl").save("mqtt odl", {"number": 8})

    found = SourceMemory()
    found.keep_in(renamed(file), "mqtt old")

    assert found.get("number", read_count, 0) == 7
    assert found.may_repeat
    found.note_repeated()
    assert not found.may_repeat


def test_an_endpoint_that_a_reload_renamed_knows_nothing(tmp_path: Path) -> None:
    store = memories(tmp_path / "g.memory", "mqtt old")
    store.save("mqtt old", {"number": 7})

    store.use_roles(["mqtt a"], ["mqtt a"])

    assert store.load("mqtt a") is None
    assert store.earlier_names("mqtt a") == "old"


def test_an_endpoint_that_was_removed_before_makes_no_later_one_doubtful(tmp_path: Path) -> None:
    """Nor does one that was renamed, once each new source of its kind has a memory."""
    file = tmp_path / "g.memory"
    store = memories(file, "mqtt old", "mqtt b")
    store.save("mqtt old", {"number": 7})
    store.save("mqtt b", {"number": 8})
    store = memories(file, "mqtt b")  # a start without it, and without a new one

    store.use_roles(["mqtt b", "mqtt a"], ["mqtt b", "mqtt a"])

    assert (store.load("mqtt a"), store.earlier_names("mqtt a")) == ({}, "")
    assert memories(file, "mqtt b", "mqtt a").load("mqtt a") == {}
    assert memories(file, "mqtt b", "mqtt old").load("mqtt old") == {"number": 7}, "it is back"


def test_each_endpoint_that_comes_when_another_one_leaves_is_doubtful_until_it_is_known(
    tmp_path: Path,
) -> None:
    file, roles = tmp_path / "g.memory", ("mqtt a", "mqtt b")
    memories(file, "mqtt old").save("mqtt old", {"number": 7})
    memories(file, *roles).save("mqtt a", {"number": 8})
    assert memories(file, *roles).load("mqtt b") is None

    store = memories(file, *roles)
    store.save("mqtt b", {"number": 9})
    store.use_roles([*roles, "mqtt c"], [*roles, "mqtt c"])

    assert store.load("mqtt c") == {}


def test_a_target_that_is_never_read_keeps_no_endpoint_missing(tmp_path: Path) -> None:
    file = tmp_path / "g.memory"
    memories(file, "mqtt old").save("mqtt old", {"number": 7})
    store = SourceMemories(MemoryFile(file))
    store.use_roles(["mqtt target"], [])

    store.use_roles(["mqtt target", "mqtt a"], ["mqtt a"])

    assert store.load("mqtt a") == {}


def test_a_memory_that_is_gone_is_damaged_where_the_gateway_ran_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "g.memory"
    assert SourceMemories(MemoryFile(file)).load("mqtt a") == {}
    assert SourceMemories(MemoryFile(file), ran_before=True).load("mqtt a") == {}
    file.unlink()

    assert SourceMemories(MemoryFile(file), ran_before=True).load("mqtt a") is None
    assert "it is absent" in caplog.text


def test_a_link_to_nowhere_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "g.memory"
    file.symlink_to(tmp_path / "absent")

    assert SourceMemories(MemoryFile(file)).load("mqtt a") is None


def test_a_memory_is_found_where_the_gateway_kept_it_before(tmp_path: Path) -> None:
    spool, journals = tmp_path / "spool" / "g.memory", tmp_path / "journal" / "g.memory"
    SourceMemories(MemoryFile(spool)).save("mqtt a", {"number": 7})

    store = SourceMemories(MemoryFile(journals, spool), ran_before=True)
    assert store.load("mqtt a") == {"number": 7}
    store.save("mqtt a", {"number": 8})
    assert SourceMemories(MemoryFile(journals, spool)).load("mqtt a") == {"number": 8}


def test_the_memories_of_another_gateway_are_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "g.memory"
    for gateway in ("h", "g"):
        kept = SourceMemory()
        kept.keep_in(SourceMemories(MemoryFile(file), gateway), "mqtt a")
        assert kept.get("number", read_count, 0) == (0 if gateway == "h" else None)
        kept.put("number", 7)

    assert "it is that of gateway 'h'" in caplog.text


def test_a_disk_without_room_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    kept = memory(tmp_path / "file" / "g.memory")
    with caplog.at_level(logging.WARNING):
        kept.put("number", 7)
    assert "cannot be written" in caplog.text
    (tmp_path / "file").unlink()

    kept.put("number", 8)

    assert memory(tmp_path / "file" / "g.memory").get("number", read_count, 0) == 8


def holder(folder: Path, instance: str) -> LeaseHolder:
    found = LeaseHolder(FileLeaseStore(folder), instance, 2.0)
    found.start()
    return found


def test_the_next_holder_of_a_pair_reads_what_the_last_one_kept(tmp_path: Path) -> None:
    facts: list[Any] = []
    for instance in ("north", "south", "north"):
        lease = holder(tmp_path / "lease", instance)
        until(lease.holds)
        kept = SourceMemory()
        kept.keep_in(SourceMemories(lease), "mqtt a")
        facts.append(kept.get("number", read_count, 0))
        kept.put("number", len(facts))
        lease.give()

    assert facts == [0, 1, 2]
