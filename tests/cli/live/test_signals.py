"""Signals between any two bytecodes of the waiting thread."""

from __future__ import annotations

import subprocess
import sys

EACH_STEP = """\
import signal, sys
from gateway.cli.live import signals as module

module.POLL_INTERVAL = 60.0  # one long wait

def raise_at(step):
    def trace(frame, event, argument):
        frame.f_trace_opcodes = True
        if event == "opcode":
            trace.steps += 1
            if trace.steps == step:
                signal.raise_signal(signal.SIGUSR1)
        return trace
    trace.steps = 0
    return trace

step, reached = 0, True
while reached:
    signals = module.SignalQueue()
    signals.catch(signal.SIGUSR1, signal.SIGALRM)
    step += 1
    signal.setitimer(signal.ITIMER_REAL, 0.2)  # wakes a wait before that step
    trace = raise_at(step)
    sys.settrace(trace)
    signals.next()
    sys.settrace(None)
    reached = trace.steps >= step
    signal.setitimer(signal.ITIMER_REAL, 0)
print(step)
"""


def test_a_signal_at_any_step_is_handled_without_a_deadlock() -> None:
    command = [sys.executable, "-c", EACH_STEP]

    steps = subprocess.check_output(command, text=True, timeout=60)  # noqa: S603  # our own

    assert int(steps) > 5


TWICE = """\
import signal
from gateway.cli.live.signals import SignalQueue

signals = SignalQueue()
signals.catch(signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM)
for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGUSR1, signal.SIGHUP):
    signal.raise_signal(number)
print(signal.Signals(signals.next()).name)
signal.raise_signal(signal.SIGHUP)
signal.raise_signal(signal.SIGTERM)
for _ in range(3):
    print(signal.Signals(signals.next()).name)
"""


def test_a_queued_signal_is_not_queued_again() -> None:
    command = [sys.executable, "-c", TWICE]

    names = subprocess.check_output(command, text=True, timeout=60)  # noqa: S603  # our own

    assert names.split() == ["SIGHUP", "SIGUSR1", "SIGHUP", "SIGTERM"]
