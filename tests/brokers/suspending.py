"""A process that a test suspends: it does nothing more from then on."""

from __future__ import annotations

import os
import signal
import subprocess


def suspend(process: subprocess.Popen[bytes]) -> None:
    """Stop all threads of the process; its connections stay open and silent.

    They may run on after the signal, until the stop is reported.
    """
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
