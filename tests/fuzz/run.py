"""Run parsers on inputs in a process of their own.

    python -m tests.fuzz.run NAME[,NAME] SEED FIRST COUNT

Prints one JSON object for each finding, then one with the figures of the run. A finding has the
input in hexadecimal, for the `regressions` of its parser.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import thread_time
from typing import Final

from tests.fuzz.inputs import MAX_INPUT, InputGenerator
from tests.fuzz.parser import Parser
from tests.fuzz.parsers import PARSERS

MAX_MEMORY: Final = 64 << 20  # bytes that a parser may add to the process, its caches included
MAX_SECONDS: Final = 0.075  # of processor time for an input of at most MAX_INPUT
MAX_MEASUREMENTS: Final = 3  # of a slow input
REFERENCE_SECONDS: Final = 0.0015  # of the work in `slowness`, on the machine of the limits
MAX_SHOWN: Final = 16_384  # bytes of an input in a finding
UNLIMITED: Final = -1
MAX_FINDINGS: Final = 5
COLLECT_INTERVAL: Final = 500  # inputs between collections of garbage, which are not timed
_PAGE: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Finding:
    parser: str
    number: int  # of the input; -1 for a large one of the table
    fault: str
    input: str  # hexadecimal; its beginning when it is long


def measure(parser: Parser, data: bytes) -> tuple[float, str]:
    """Return the processor time in seconds, and the error that must not leave the parser."""
    fault = ""
    began = thread_time()
    try:
        parser.parse(data)
    except parser.errors:
        pass
    except BaseException as error:  # noqa: BLE001  # any other one is the finding
        fault = f"{type(error).__name__}: {str(error)[:200]}"
    return thread_time() - began, fault


def find_fault(parser: Parser, data: bytes) -> tuple[float, str]:
    """Return the time and the broken rule, if any; a slow input is measured three times."""
    allowed = MAX_SECONDS
    if len(data) > MAX_INPUT:
        allowed = max(allowed, parser.seconds_per_mebibyte * len(data) / (1 << 20))
    times: list[float] = []
    for _ in range(MAX_MEASUREMENTS):
        seconds, fault = measure(parser, data)
        if fault or seconds <= allowed:
            return seconds, fault
        times.append(seconds / slowness())
        gc.collect()
    seconds = min(times)
    return seconds, f"took {seconds:.3f} s of processor time" * (seconds > allowed)


def slowness() -> float:
    """Return how much slower than alone this process is now, by a work of known time; at least 1.

    Processor time grows, too, while others use the caches and the other half of a core.
    """
    began = thread_time()
    texts: dict[str, str] = {}
    for number in range(20_000):
        text = str(number)
        texts[text[-2:]] = text
    return max(1.0, (thread_time() - began) / REFERENCE_SECONDS)


def run(parser: Parser, seed: int, first: int, count: int) -> tuple[list[Finding], float]:
    """Return the findings of `count` inputs, and the processor time of the slowest one."""
    inputs = InputGenerator(parser.valid, parser.words, seed)
    findings: list[Finding] = []
    slowest = 0.0

    def check(number: int, data: bytes) -> None:
        nonlocal slowest
        seconds, fault = find_fault(parser, data)
        slowest = max(slowest, seconds)
        if fault:
            findings.append(Finding(parser.name, number, fault, data[:MAX_SHOWN].hex()))

    limit_memory(0)
    for data in (*parser.valid, *parser.regressions):
        check(-1, data)
    for data in parser.large() if first == 0 else ():
        limit_memory(len(data))
        check(-1, data)
        limit_memory(UNLIMITED)
        gc.collect()
    limit_memory(0)
    for number in range(first, first + count):
        check(number, inputs.make(number))
        if number % COLLECT_INTERVAL == 0:
            gc.collect()
        if len(findings) >= MAX_FINDINGS:
            break
    limit_memory(UNLIMITED)
    return findings, slowest


def limit_memory(size: int) -> None:
    """Let the process grow by `MAX_MEMORY` and `size` bytes; beyond that it gets MemoryError."""
    limit = resource.RLIM_INFINITY
    if size != UNLIMITED:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
        limit = now + MAX_MEMORY + size
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def main(names: str, seed: str, first: str, count: str) -> None:
    gc.disable()
    for name in names.split(","):
        parser = PARSERS[name]()
        for data in parser.valid:
            measure(parser, data)  # loads what the parser loads once
        gc.collect()
        gc.freeze()
        began = thread_time()
        findings, slowest = run(parser, int(seed), int(first), int(count))
        for each in findings:
            sys.stdout.write(json.dumps({"finding": asdict(each)}) + "\n")
        figures = {"parser": name, "seconds": thread_time() - began, "slowest": slowest}
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
