"""A network for one test: no other process there has the ports that the documents print."""

from __future__ import annotations

import fcntl
import shutil
import socket
import struct
import subprocess
from functools import cache

SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41
# A user's own namespace has one user, so mosquitto, started by root, cannot change to its own.
WAYS = (
    ("unshare", "--net"),
    ("unshare", "--map-current-user", "--keep-caps", "--net"),
)


@cache
def own_network() -> tuple[str, ...]:
    """Return the words before a command that give it such a network; none when that is refused."""
    if shutil.which("unshare") is None:
        return ()
    return next((way for way in WAYS if _works(way)), ())


def _works(way: tuple[str, ...]) -> bool:
    return subprocess.run((*way, "true"), capture_output=True, check=False).returncode == 0  # noqa: S603  # our own command


def start_loopback() -> None:
    """Bring up the loopback interface of this process's network."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", UP_AND_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
