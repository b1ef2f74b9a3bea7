"""`make bench`: runs every benchmark in sequence, and writes a page with what each printed last.

    python -m benchmarks [NAME ...] [--page FILE] [--quick]

Each benchmark is a process of its own. One that fails does not stop the others, and the exit status
is 1 then. Ctrl-C ends the benchmark that runs, which prints its rows until then, and the page has
them. `--quick` passes few messages, and shows only that each benchmark runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.columns import INTERRUPTED, table

PROGRAMS = (
    "names", "table", "archive", "proofs", "relay", "stages", "batches", "memory", "through",
    "delivery", "yami4", "jms", "jms_relay", "smf", "streams", "peers", "reconcile", "hour",
    "core_each", "division",
)  # fmt: skip
QUICK = {  # options of `--quick`; a program without an entry has no size
    "names": "--names 2000",
    "archive": "--messages 10000",
    "relay": "--messages 2000 --shapes 'qos 1'",
    "stages": "--messages 3000 --shapes 'qos 1'",
    "batches": "--seconds 0.1",
    "memory": "--messages 5000",
    "through": "--messages 1000 --systems yami4",
    "delivery": "--messages 5000 --rounds 1 --spooled 10000",
    "yami4": "--messages 2560",
    "jms_relay": "--messages 1000 --topics 10 --relays gateway",
    "streams": "--messages 1000 --systems nats",
    "peers": "--messages 1000 --systems nats --relays nats-py gateway",
    "reconcile": "--messages 20000",
    "hour": "--minutes 1",
    "core_each": "--messages 1000 --times 1 --shapes 'qos 1' --systems yami4",
    "division": "--messages 2000 --rounds 1",
}
PAGE = Path("build/benchmarks.md")
MAX_LINES = 40  # of one benchmark on the page


@dataclass(frozen=True, slots=True)
class Run:
    """A benchmark that has ended, with all that it printed."""

    name: str
    status: int
    seconds: float
    output: str

    @property
    def figures(self) -> str:
        """The last table that it printed; without one, its last lines."""
        lines = self.output.splitlines()
        last = len(lines)
        while last and not lines[last - 1].startswith("|"):
            last -= 1
        first = last
        while first and lines[first - 1].startswith("|"):
            first -= 1
        if last and not self.status:
            return "\n".join(lines[first:last])
        return "\n".join(["```", *lines[-MAX_LINES:], "```"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", default=PROGRAMS, metavar="NAME")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--quick", action="store_true", help="few messages")
    args = parser.parse_args()
    runs: list[Run] = []
    args.page.parent.mkdir(parents=True, exist_ok=True)
    for name in args.names:
        print(f"== {name}", flush=True)
        runs.append(run(name, shlex.split(QUICK.get(name, "")) if args.quick else ()))
        args.page.write_text(page(runs))  # after each: a run of hours may be stopped
        if runs[-1].status in {INTERRUPTED, -signal.SIGINT}:
            break
    failed = [each.name for each in runs if each.status]
    print(f"== summary in {args.page}; failed: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


def run(name: str, options: Sequence[str] = ()) -> Run:
    """Run one benchmark, and show what it prints as it comes."""
    began, lines = time.monotonic(), []
    command = [sys.executable, "-u", "-m", f"benchmarks.{name}", *options]
    with subprocess.Popen(  # noqa: S603  # a fixed command
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        while True:
            with suppress(KeyboardInterrupt):  # the benchmark gets it too, and prints its rows
                for line in process.stdout:
                    print(line, end="", flush=True)
                    lines.append(line)
                break
    return Run(name, process.returncode, time.monotonic() - began, "".join(lines))


def page(runs: Sequence[Run]) -> str:
    """Return the summary as Markdown."""
    rows = [
        {
            "benchmark": each.name,
            "ended": f"with status {each.status}" if each.status else "well",
            "seconds": round(each.seconds),
        }
        for each in runs
    ]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    parts = ["# Benchmarks", machine, table(rows)]
    for each in runs:
        parts += [f"## {each.name}", each.figures]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
