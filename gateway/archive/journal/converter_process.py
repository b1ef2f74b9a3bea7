"""Starts the converter as a child process, one at a time, and retries failed conversions.

A child process, because Parquet in the gateway would cost memory and delay messages. Another one
copies, before the start of an instance, what others left in a remote archive.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, cast

import gateway
from gateway.archive.location import ArchiveLocation
from gateway.archive.seal_key import KEY_VARIABLE, PREVIOUS_KEY_VARIABLE, proving_keys

log = logging.getLogger(__name__)

_PACKAGES: Final = str(Path(gateway.__file__).resolve().parents[1])  # the child imports this code
_NICE: Final = ("--nice", "19")  # messages have priority over conversion
_MAX_NICE_BYTES: Final = 256 << 20  # of journals; with more, freeing the disk has priority
_ENVIRONMENT: Final = {"MIMALLOC_PURGE_DELAY": "0"}  # Arrow returns freed memory at once
_MAX_RETRY_INTERVAL: Final = 30.0  # seconds
_OTHERS_INTERVAL: Final = 0.5  # seconds between looks at a journal that another converter has
_MAX_JOURNALS: Final = 1_000  # of one converter: the kernel limits the size of a command line
FETCH_SECONDS: Final = 5.0  # limit of the copies before a start
_MAX_REPORT: Final = 2_000  # bytes of the converter's output in the log, the last ones


class Converter:
    """The running child process, and the journals that wait for the next one.

    Mutable: used by one thread at a time.
    """

    def __init__(
        self, location: ArchiveLocation, keep_days: int | None = None, key: bytes | None = None
    ) -> None:
        """Prepare the command; the child process gets the `key` of the seals by its environment."""
        self._command = [
            sys.executable,
            "-m",
            "gateway.night.archive.segments",
            str(location.local),
        ]
        self._command += ["--to", location.url] if location.url else []
        self._command += [] if keep_days is None else ["--keep-days", str(keep_days)]
        self._environment = _child_environment(key)
        self._sizes: dict[Path, int] = {}  # bytes of the journals that are not converted yet
        self._converting: list[Path] = []  # those of the child, the first ones
        self._child: subprocess.Popen[bytes] | None = None
        self._output: BinaryIO = BytesIO()  # of the child
        self._failures = 0
        self.failed = 0  # conversions since the start
        self.is_awaited = False  # by a stop, when no message has priority any more
        self._retry_time = 0.0
        self._logged = ""

    @property
    def busy(self) -> bool:
        """Whether `poll` has work, now or later."""
        return self._child is not None or bool(self._sizes)

    @property
    def held_bytes(self) -> int:
        """Bytes of the journals that are not converted yet."""
        return sum(self._sizes.values())

    @property
    def waiting(self) -> int:
        """The number of these journals."""
        return len(self._sizes)

    def add(self, journals: Iterable[Path]) -> None:
        """Convert `journals`, and those that failed before; return at once."""
        for path in journals:
            self._sizes[path] = 0
            with suppress(OSError):
                self._sizes[path] = path.stat().st_size
        self.poll()

    def start_without_journals(self) -> None:
        """Start a converter that removes old days, and uploads the head of a remote archive.

        That head tells of this start: without it, a disk that is lost before the first conversion
        leaves no trace of its rows after an earlier stop.
        """
        if self._child is None:
            self._start()

    def poll(self) -> None:
        """Collect a converter that ended, and start the next one when it is due."""
        if self._child is not None and self._child.poll() is not None:
            self._collect(self._child)
        if self._child is None and self._sizes and time.monotonic() >= self._retry_time:
            self._start()

    def finish(self, timeout: float) -> list[Path]:
        """Convert within `timeout` seconds; return the journals left for the next start.

        A failed conversion is not repeated. A journal that another converter has is awaited: that
        of a killed gateway goes on after it.
        """
        deadline = time.monotonic() + timeout
        self._wait(deadline)
        failed, self._retry_time = False, 0.0
        while self._sizes and not failed and (left := deadline - time.monotonic()) > 0:
            time.sleep(max(0.0, min(self._retry_time - time.monotonic(), left)))
            failures = self._failures
            self._start()
            self._wait(deadline)
            failed = self._failures > failures
        return list(self._sizes)

    def _start(self) -> None:
        self._converting = list(self._sizes)[:_MAX_JOURNALS]
        waiting = sum(self._sizes[path] for path in self._converting)
        nice = () if self.is_awaited or waiting > _MAX_NICE_BYTES else _NICE
        try:
            # A full pipe would stop the converter, and a full disk its output.
            self._output = _file_in_memory()
            self._child = subprocess.Popen(  # noqa: S603  # our own module, no shell
                [*self._command, *nice, *map(str, self._converting)],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._output,
                # A process group of its own: an interrupt at the terminal does not reach it.
                # Not a session of its own: Linux divides cores among sessions first (autogroup),
                # and `nice` would have no effect on the gateway's share.
                process_group=0,
            )
        except OSError as error:
            self._output.close()
            self._retry_later(f"the converter did not start: {error}; the journals stay")

    def _wait(self, deadline: float) -> None:
        """Await the converter; end one that needs more time than the gateway's stop has."""
        if (child := self._child) is None:
            return
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            self._output.close()
            self._left()
            log.warning(
                "archive: its time to stop is over; the next start or night converts the rest"
            )
        else:
            self._collect(child)

    def _collect(self, child: subprocess.Popen[bytes]) -> None:
        """Log the output of a converter that ended; its unconverted journals wait for the next."""
        report, left = _last_text(self._output), self._left()
        if child.returncode:
            for path in list(self._sizes)[:1]:  # it may be the cause: the others go before it
                self._sizes[path] = self._sizes.pop(path)
            self._retry_later(report or f"the converter {_ending(child.returncode)}")
            return
        if report:
            log.warning("archive: %s", report)
        if left:
            self._retry_time = time.monotonic() + _OTHERS_INTERVAL
        elif self._failures:
            log.warning("archive: the converter works again")
            self._failures, self._logged = 0, ""

    def _left(self) -> bool:
        """Note that the child ended; return whether it left a journal, as another one has it."""
        self._child = None
        for path in self._converting:
            if not path.exists():
                del self._sizes[path]
        return not self._sizes.keys().isdisjoint(self._converting)

    def _retry_later(self, report: str) -> None:
        """Double the retry interval, and log the report unless it is the same as the last."""
        self._failures += 1
        self.failed += 1
        interval = min(_MAX_RETRY_INTERVAL, 2.0 ** min(self._failures, 10) / 2)
        self._retry_time = time.monotonic() + interval
        if report != self._logged:
            log.warning("archive: %s", report)
            self._logged = report


def fetch_others(location: ArchiveLocation, writer: str, key: bytes | None) -> None:
    """Copy the heads and short names of other instances of a gateway to the buffer of `writer`.

    A buffer without a head of `writer` gets that as well: it continues the chain of the machine
    before it.

    With a `key`, heads without its signature are not copied. After FETCH_SECONDS, or when the
    archive cannot be reached, the copies of an earlier start stay.
    """
    command = [sys.executable, "-m", "gateway.night.archive.segments", str(location.local)]
    command += ["--to", location.url, "--fetch", writer]
    try:
        subprocess.run(  # noqa: S603  # our own module, no shell
            command,
            env=_child_environment(key),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=FETCH_SECONDS,
            process_group=0,  # as the converter
        )
    except subprocess.TimeoutExpired:
        reason = f"no answer within {FETCH_SECONDS:g} s"
    except subprocess.CalledProcessError as error:
        reason = error.stderr[-_MAX_REPORT:].decode(errors="replace").strip()
    except OSError as error:
        reason = str(error)
    else:
        return
    log.warning(
        "archive: the heads and short names of other machines are those of an earlier start: %s",
        reason,
    )


def _file_in_memory() -> BinaryIO:
    """Return a new file in memory; macOS has none, and gets one without a name on disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("converter"), "w+b")
    return cast(BinaryIO, tempfile.TemporaryFile())  # the reader closes it


def _last_text(output: BinaryIO) -> str:
    """Return the end of the output, and close it."""
    with output:
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - _MAX_REPORT))
        return output.read().decode(errors="replace").strip()


def _ending(status: int) -> str:
    """Describe the end of a process without output; a negative status is that of a signal."""
    if status >= 0:
        return f"ended with status {status}"
    names = {each.value: each.name for each in signal.Signals}
    return f"was killed by {names.get(-status, -status)}; see that the machine has memory"


def _child_environment(key: bytes | None) -> dict[str, str]:
    """Return the environment of the converter; without a `key` it has none of another program."""
    paths = filter(None, (_PACKAGES, os.environ.get("PYTHONPATH")))
    found = {**os.environ, **_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)}
    names = KEY_VARIABLE, PREVIOUS_KEY_VARIABLE
    for name in names:
        found.pop(name, None)
    keys = zip(names, proving_keys(key), strict=False)  # often without a previous one
    return found | {name: os.fsdecode(each) for name, each in keys if each is not None}
