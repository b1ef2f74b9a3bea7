"""The rules of findings about an archive: meaning, and the advice for the operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FindingAdvice:
    """The meaning of a rule, and the operator's next step."""

    meaning: str
    advice: str
    rows_intact: bool = False  # with only this error, the date's counts are those of all its rows


def _of_rows_intact(meaning: str, advice: str) -> FindingAdvice:
    return FindingAdvice(meaning, advice, rows_intact=True)


_RESTORE: Final = "Restore the file from a copy of the archive, then reconcile again."
_INTRUDER: Final = (
    "Find out who can write to the archive. Keep the file for the investigation, and restore the"
    " original from a copy."
)
_DISK: Final = "Check the disk and the file system; the lost rows can be replayed by no command."

# Rules of the chain and of the seals come first, then those of files.
FINDING_ADVICE: Final[Mapping[str, FindingAdvice]] = {
    "missing-seal": FindingAdvice(
        "The numbers of a gateway's journals have a gap: the seal of a journal is absent, and"
        " with it everything that the journal held.",
        "Restore the seal and its segments from a copy. Without a copy, the interval between"
        " the two neighbours is unknown.",
    ),
    "forked-chain": FindingAdvice(
        "Two journals name the same predecessor.",
        "Two gateways ran with one name, or a copy of an old archive was put back. Give each"
        " gateway its own name.",
    ),
    "forged-seal": FindingAdvice(
        "The seal does not match its own digest, or was made with another key.", _INTRUDER
    ),
    "unsigned-seal": FindingAdvice(
        "A key was given, and the seal was made without one.",
        "Before `archive.seal_key` was set this is expected: verify these dates without the"
        f" key. Later dates: {_INTRUDER[0].lower()}{_INTRUDER[1:]}",
    ),
    "unchecked-seals": FindingAdvice(
        "The seals have a key, and it was not given: a forger is not found.",
        "Set GATEWAY_SEAL_KEY, or give --seal-key FILE.",
    ),
    "missing-segment": FindingAdvice("A segment that a seal lists is absent.", _RESTORE),
    "changed-segment": FindingAdvice("The content of a segment differs from its seal.", _INTRUDER),
    "unsealed-segment": FindingAdvice(
        "No seal lists the segment: a copy under another name, or a file from elsewhere.",
        "Move it out of the archive.",
    ),
    "wrong-folder": FindingAdvice(
        "The rows of a segment belong to another date or hour than its folder.",
        "Move the file back to its folder, as the seal lists it.",
    ),
    "torn-journal": FindingAdvice(
        "A journal ends before the last byte that was acknowledged: acknowledged rows are lost.",
        _DISK,
    ),
    "damaged-journal": FindingAdvice(
        "A journal could not be read completely; its readable rows are converted.",
        "Keep the .damaged file in ARCHIVE/.journal, and check the disk.",
    ),
    "killed-journal": FindingAdvice(
        "A gateway was killed. The end of its journal is proven to the last acknowledged byte"
        " of the running system.",
        "Nothing, unless the machine lost power: then rows of the last second may be absent.",
    ),
    "lost-values": FindingAdvice(
        "Values of some rows fit no column, and are null in the archive.",
        "The gateway's log has them. Report the fault.",
    ),
    "lease-order": FindingAdvice(
        "Instances of one gateway wrote under leases whose numbers do not rise.",
        "See that all of them use the same lease, and that nobody reset it.",
    ),
    "two-holders": FindingAdvice(
        "Two instances of one gateway handed messages over at the same time.",
        "Let one instance be active at a time; give two gateways two names. Compare the clocks"
        " of the hosts.",
    ),
    "open-chain": FindingAdvice(
        "Nothing proves the rows of a gateway after the given time.",
        "Start the gateway, which converts its journals; or restore the rest of its archive."
        " If it was removed for good, its last stop was not in good order.",
    ),
    "open-journal": FindingAdvice(
        "A gateway still writes the journal that continues the chain.",
        "Nothing; the copies in it count as in flight.",
    ),
    "unconverted-journal": FindingAdvice(
        "No process holds a journal, and this run could not convert it.",
        "Start its gateway; or give this run the key of the seals, or the right to write the"
        " archive.",
    ),
    "new-chain": FindingAdvice(
        "A gateway began a new chain: its head was gone at its start, or its former chain had"
        " not ended with a stop.",
        "Restore the journals or the head of the gateway. An error stays until the date is"
        " older than the retention.",
    ),
    "missing-journal": FindingAdvice(
        "A journal that the head of a gateway or a later journal names is nowhere; its rows are"
        " missing.",
        "Restore the folder .journal of the gateway, or the seals, from a copy.",
    ),
    "missing-head": FindingAdvice(
        "A gateway wrote to the archive, and its head is gone: nothing says what came last.",
        _RESTORE,
    ),
    "forged-head": FindingAdvice(
        "The head of a gateway is not what the gateway wrote, or was signed with another key.",
        _INTRUDER + " A file that ends in .damaged was changed before a start: remove it when"
        " the cause is known.",
    ),
    "old-head": FindingAdvice(
        "The head of a gateway states less than the archive has: an older copy was put back.",
        _RESTORE,
    ),
    "silent-writer": FindingAdvice(
        "A gateway wrote nothing since the given head, and had not stopped.",
        "Start it. If it will not return: gateway archive retire ARCHIVE WRITER --why TEXT.",
    ),
    "forgotten-unresolved": _of_rows_intact(
        "A date was removed while copies of it had no outcome.",
        "Keep more days than spooled copies may wait (archive.keep_days).",
    ),
    "forgotten-unjudged": _of_rows_intact(
        "A date was removed with rows that no night judged.",
        "Let the night run each day, or keep more days (archive.keep_days).",
    ),
    "late-for-forgotten": _of_rows_intact(
        "Rows came for messages of a date that was removed: their classes are not known.",
        "Look at the rows with gateway archive show; keep more days if it occurs again.",
    ),
    "missing-night": _of_rows_intact(
        "A record of the chain of nights is gone.",
        "Restore ARCHIVE/_nights from a copy, and see who can write the archive.",
    ),
    "forged-marker": _of_rows_intact(
        "a marker in _done was not written by a night or a compaction of this archive",
        "See what a scheduler did with it, and remove it; the next night of its date writes it"
        " again.",
    ),
    "forged-night": _of_rows_intact(
        "A record of the chain of nights is not what its night wrote.", _INTRUDER
    ),
    "chain-begins": FindingAdvice(
        "The predecessor of the first journal was removed by the retention.",
        "Nothing.",
    ),
    "forged-removal": FindingAdvice(
        "A statement about removed dates is not what a removal wrote, or was signed with another"
        " key: the journals that it names count as missing.",
        _INTRUDER + " Restore ARCHIVE/_removed from a copy, or remove the file.",
    ),
    "no-seals": FindingAdvice(
        "The date has data, and no seal: nothing proves it, and its rows were not counted.",
        "Restore ARCHIVE/_seals from a copy.",
    ),
    "damaged-routes": _of_rows_intact(
        "A file with the routes of a gateway is not what the gateway wrote; the names of its"
        " time were not checked.",
        _INTRUDER,
    ),
    "unreadable-file": FindingAdvice(
        "A file is cut, is no Parquet, or has a damaged page. Its rows were not counted.", _RESTORE
    ),
    "renamed": _of_rows_intact(
        "Copies have other names than the routes of their time would give them; with --mapping,"
        " than the mapping would.",
        "See Renamed. Without --mapping, the rows or the routes were changed, or the gateway"
        " translated wrongly: report the fault. With it, correct the mapping, unless it was"
        " changed on purpose.",
    ),
    "no-data": FindingAdvice(
        "The archive has no readable segment of the date.",
        "Check the date and the archive's path, and whether the gateway ran. The first rows of a"
        " new gateway are in the archive after a quarter of an hour, or after a stop.",
    ),
    "no-answer": FindingAdvice(
        "The command could not run.", "Read the finding; run the command in a terminal."
    ),
}
_UNKNOWN: Final = FindingAdvice("", "")


def advice_for(rule: str) -> FindingAdvice:
    """Return the meaning and the advice of a rule; empty texts for an unknown one."""
    return FINDING_ADVICE.get(rule, _UNKNOWN)
