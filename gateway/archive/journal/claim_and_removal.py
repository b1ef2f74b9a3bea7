"""The claim of a journal by its writer or a converter, and the removal of a converted one."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Final

from gateway.archive.durable import open_regular, sync_folder
from gateway.archive.layout import ACK, DAMAGED, DONE
from gateway.file_lock import try_lock, try_share

_TRUNCATE_STEP: Final = 1 << 20  # bytes of a converted journal that are freed at once
_TRUNCATE_INTERVAL: Final = 0.01  # seconds


def lock_new(path: Path, file: int) -> None:
    """Lock a new journal; a converter may have taken it since its creation."""
    if not (try_lock(file) and _is_same_file(path, file)):
        raise BlockingIOError(errno.EWOULDBLOCK, "a converter has the new journal", str(path))


def claim_journal(path: Path) -> int | None:
    """Lock a closed journal for conversion; return its descriptor, which the caller closes.

    Return None when a gateway writes the journal, or another converter has it.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return None
    # A converter may have renamed the file between the opening and the lock.
    if try_lock(file) and _is_same_file(path, file):
        return file
    os.close(file)
    return None


def is_in_use(path: Path) -> bool:
    """Return whether a process has the journal at `path`, or it is gone."""
    with suppress(FileNotFoundError), os.fdopen(open_regular(path), "rb") as file:
        return not try_share(file.fileno())
    return True


def discard_journal(path: Path) -> None:
    """Remove a converted journal; from its rename to `.done` on, no converter takes it again.

    A file that cannot be removed now is left to the next converter.
    """
    done = path.with_suffix(DONE)
    path.rename(done)
    sync_folder(path.parent)  # before the truncation: else a crash could leave a part to convert
    with suppress(OSError):
        remove_done(done)


def set_aside(path: Path) -> None:
    """Keep a journal for inspection as `.damaged`; no converter takes it again."""
    path.rename(path.with_suffix(DAMAGED))
    sync_folder(path.parent)
    path.with_suffix(ACK).unlink(missing_ok=True)


def remove_done(done: Path) -> None:
    """Remove a converted journal in steps of a megabyte.

    Some disks discard freed blocks at once (ext4 with `discard`), and the next flush waits for
    all of them: 50 ms for 64 MB.
    """
    done.with_suffix(ACK).unlink(missing_ok=True)
    with suppress(FileNotFoundError):  # another converter may remove it at the same time
        for size in range(done.stat().st_size - _TRUNCATE_STEP, 0, -_TRUNCATE_STEP):
            os.truncate(done, size)
            sleep(_TRUNCATE_INTERVAL)
        done.unlink()


def _is_same_file(path: Path, file: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file))
    return False
