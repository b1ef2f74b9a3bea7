"""Find files that settings name and that are absent, and folders that an upgrade leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Final

from gateway.check.key_location import key_location
from gateway.config.load import Configuration
from gateway.config.nodes import KeyPath
from gateway.config.values.written_path import WrittenPath
from gateway.errors import ConfigError

_NOUNS = {"file": "file", "folder": "folder", "jars": "file"}
_OF_FILE_SYSTEM: Final = "lost+found"  # the root of an empty ext4 volume has it


def path_faults(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield an error for each setting whose file or folder is absent or was left behind.

    Without secrets there is none: the files of the gateway's machine are not here, either.
    """
    if configuration.without_secrets:
        return
    for at, path in configuration.paths.items():
        location = key_location(at, configuration)
        key = _setting(at)
        if path.kind == "state":
            if _is_left_behind(path):
                state = "is empty" if Path(path.used).exists() else "is absent"
                reason = f"{key}: {path.used} {state}, and {Path(path.written).absolute()} is not"
                hint = (
                    "a path is relative to its file, no longer to the working directory;"
                    f" move the old content to {path.used}, or write its absolute path"
                )
                yield location.error("moved-path", reason, hint)
        elif not _exists(path.used, path):
            reason = f"{key}: no {_NOUNS[path.kind]} {path.used}"
            hint = "create or mount it, or correct the path"
            if path.used != path.written and _exists(path.written, path):
                hint = "a path is relative to its file, not to the working directory"
            yield location.error("absent-file", reason, hint)


def _setting(at: KeyPath) -> str:
    """Return the name of a setting for people, such as "endpoint 'plant': `tls.ca_file`"."""
    words = [each for each in at if isinstance(each, str)]  # without positions in a list
    if words[0] == "endpoints":
        return f"endpoint {words[1]!r}: `{'.'.join(words[2:])}`"
    return f"`{'.'.join(words)}`"


def _is_left_behind(path: WrittenPath) -> bool:
    """Return whether the folder of a relative path has content in the working directory only.

    Earlier versions kept it there. A gateway that began with an empty folder would not send the
    messages of its old spool. A mount makes such a folder before the gateway starts.
    """
    old, used = Path(path.written), Path(path.used)
    if old == used or "://" in path.written:
        return False
    try:
        return _has_content(old) and not (used.is_file() or _has_content(used))
    except OSError:
        return False


def _has_content(folder: Path) -> bool:
    return folder.is_dir() and any(each.name != _OF_FILE_SYSTEM for each in folder.iterdir())


def _exists(text: str, path: WrittenPath) -> bool:
    """Return whether there is the file or folder; for jars a file that matches the pattern."""
    try:
        if path.kind == "jars":
            return any(Path(each).exists() for each in glob(text))  # noqa: PTH207  # absolute, too
        return Path(text).is_dir() if path.kind == "folder" else Path(text).is_file()
    except OSError:  # such as a name that is too long
        return False
