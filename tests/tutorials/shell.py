"""A shell that is typed into."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Final

from tests.docs_world import PATH

END: Final = "end of the output"
# A subscriber does not report when its subscription holds, except to its debugging output.
SUBSCRIBED: Final = Path(".subscribed")
SUBSCRIBER: Final = f"""\
mosquitto_sub() {{
    stdbuf -oL mosquitto_sub -d "$@" | tee -a {SUBSCRIBED} \
        | grep --line-buffered -v '^Client \\|^Subscribed (mid'
}}
"""


class Shell:
    """A shell in a folder, with its background processes. Mutable: owned by one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            ["/bin/bash", "--norc"], cwd=folder,
            env={**os.environ, "PATH": PATH, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        (folder / SUBSCRIBED).touch()
        self.type(SUBSCRIBER)

    def type(self, text: str) -> tuple[str, int]:
        """Type a command and return its output and its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{text}\nprintf '\\n{END} %s\\n' $?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if found := re.fullmatch(rf"{END} (\d+)\n", line):
                return "".join(lines).removesuffix("\n"), int(found[1])
            lines.append(line)
        raise AssertionError(f"the shell ended: {text}: {''.join(lines)}")

    def subscriptions(self) -> int:
        """Return the number of subscriptions that their brokers have confirmed."""
        return (self._folder / SUBSCRIBED).read_text().count("Subscribed (mid")

    def end(self) -> None:
        """End the shell and all that it started."""
        os.killpg(self._process.pid, signal.SIGTERM)
        os.killpg(self._process.pid, signal.SIGCONT)
        self._process.communicate()
