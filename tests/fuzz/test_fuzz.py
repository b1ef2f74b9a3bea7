"""Any input to any parser: a value or one of its own errors, within 64 MB and its time.

A finding is printed with its input in hexadecimal, which becomes a row of `regressions`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fuzz.inputs import InputGenerator
from tests.fuzz.parsers import PARSERS

ROOT = Path(__file__).parents[2]
SEED = 28
SHORT, LONG = 20, 1_000_000  # inputs for each parser
SHARDS = 8


def findings(names: str, first: int, count: int) -> list[str]:
    """Run parsers on inputs in a process with a limit of memory; return all that was found."""
    command = [sys.executable, "-m", "tests.fuzz.run", names, str(SEED), str(first), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  # this interpreter
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = [json.dumps(line["finding"]) for line in lines if "finding" in line]
    ran = [line["parser"] for line in lines if "parser" in line]
    if done.returncode or ran != names.split(","):
        found.append(
            f"the process ended with {done.returncode} after {ran}: {done.stderr[-2_000:]}"
        )
    return found


def test_every_parser_for_a_moment() -> None:
    assert findings(",".join(PARSERS), LONG, SHORT) == []  # the first ones have large inputs


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", PARSERS)
def test_a_million_inputs(name: str) -> None:
    count = LONG // SHARDS
    with ThreadPoolExecutor(2) as pool:  # each waits for its process
        shards = pool.map(lambda number: findings(name, number * count, count), range(SHARDS))
        assert [each for shard in shards for each in shard] == []


def test_an_input_depends_on_its_seed_and_number_only() -> None:
    valid = (b"one", b"two words")
    there = [InputGenerator(valid, (), 1).make(number) for number in range(500)]
    generator = InputGenerator(valid, (), 1)
    back = [generator.make(number) for number in reversed(range(500))]

    assert there == back[::-1]
    assert there != [InputGenerator(valid, (), 2).make(number) for number in range(500)]
    assert len(set(there)) > 400
