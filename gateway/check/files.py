"""Find files that settings name and that are absent."""

from __future__ import annotations

from collections.abc import Iterator
from glob import glob
from pathlib import Path

from gateway.config.load import Configuration
from gateway.config.named_files import WrittenPath
from gateway.config.nodes import KeyPath
from gateway.errors import ConfigError

_NOUNS = {"file": "file", "folder": "folder", "jars": "file"}


def path_faults(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield an error for each setting whose file or folder is absent; a state's is made later.

    Without secrets there is none: the files of the gateway's machine are not here, either.
    """
    if configuration.without_secrets:
        return
    for at, path in configuration.paths.items():
        if path.kind != "state" and not _exists(path.used, path):
            reason = f"{_setting(at)}: no {_NOUNS[path.kind]} {path.used}"
            hint = "create or mount it, or correct the path"
            if path.used != path.written and _exists(path.written, path):
                hint = "a path is relative to its file, not to the working directory"
            yield configuration.location_of(at).error("absent-file", reason, hint)


def _setting(at: KeyPath) -> str:
    """Return the name of a setting for people, such as "endpoint 'plant': `tls.ca_file`"."""
    words = [each for each in at if isinstance(each, str)]  # without positions in a list
    if words[0] == "endpoints":
        return f"endpoint {words[1]!r}: `{'.'.join(words[2:])}`"
    return f"`{'.'.join(words)}`"


def _exists(text: str, path: WrittenPath) -> bool:
    """Return whether there is the file or folder; for jars a file that matches the pattern."""
    try:
        if path.kind == "jars":
            return any(Path(each).exists() for each in glob(text))  # noqa: PTH207  # absolute, too
        return Path(text).is_dir() if path.kind == "folder" else Path(text).is_file()
    except OSError:  # such as a name that is too long
        return False
