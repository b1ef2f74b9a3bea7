"""The connections of this process to its brokers, whichever driver has made them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

LISTENS: Final = "0A"  # the state of a socket in /proc/net/tcp


def connections() -> dict[int, Path]:
    """The connections of this process to a port where somebody listens: inode and descriptor."""
    found: dict[int, Path] = {}
    for link in [*Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):
            kind, _, inode = str(link.readlink()).partition(":")
            if kind == "socket":
                found[int(inode.strip("[]"))] = link
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
    ]
    ports = {local.partition(":")[2] for _, local, _, state, *_ in rows if state == LISTENS}
    reached = {int(each[9]) for each in rows if each[2].partition(":")[2] in ports}
    return {inode: found[inode] for inode in reached & found.keys()}


def cut(descriptor: Path) -> None:
    """End a connection without a word of its protocol, as the end of a process does."""
    with suppress(OSError), socket.socket(fileno=os.dup(int(descriptor.name))) as found:
        found.shutdown(socket.SHUT_RDWR)
