"""Judges worlds: `python -m tests.nights.model_of_dates SEED [--to N] [--log]`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.nights.model_of_dates.campaign import judged_world


def main() -> int:
    """Judge the worlds of the command line; return 1 if a verdict contradicts the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.nights.model_of_dates")
    parser.add_argument("seed", type=int)
    parser.add_argument("--to", type=int, help="judge all seeds up to this one, without it")
    parser.add_argument("--dates", type=int, default=20)
    parser.add_argument("--log", action="store_true", help="print what happened")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    options = parser.parse_args()
    failed, begin, worlds, nights, verified = 0, time.monotonic(), 0, 0, 0
    for seed in range(options.seed, options.to or options.seed + 1):
        if time.monotonic() - begin > options.seconds:
            break
        try:
            judge, log = judged_world(seed, options.dates)
        except Exception as fault:  # noqa: BLE001  # the other worlds of a campaign go on
            worlds, failed = worlds + 1, failed + 1
            _print(f"seed {seed}: {type(fault).__name__}: {fault}")
            continue
        worlds, nights, verified = worlds + 1, nights + judge.nights, verified + judge.verified
        if options.log:
            _print(*log)
        if judge.contradictions:
            failed += 1
            first, *others = dict.fromkeys(judge.contradictions)
            _print(f"seed {seed}: {first} (and {len(others)} more)")
            if options.log:
                _print(*others)
    seconds = time.monotonic() - begin
    _print(
        f"{worlds} worlds, {nights} nights, {verified} verdicts in {seconds:.0f} s, {failed} bad"
    )
    return int(bool(failed))


def _print(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
