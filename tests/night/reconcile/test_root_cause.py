"""The innermost exception of Java or Python is the error text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gateway.night.reconcile.root_cause import cause_in, root_cause

PYTHON = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "row_reader.py", line 80, in row_groups
    yield parquet
OSError: Corrupt page

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "executors.py", line 42, in read
    for table in run(tasks[number]):
gateway.errors.ArchiveError: date=2026-03-14/hour=12/a.parquet: cannot be read: Corrupt page

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""
TEXTS = [
    pytest.param(
        PYTHON, "date=2026-03-14/hour=12/a.parquet: cannot be read: Corrupt page", id="our-own"
    ),
    pytest.param(
        PYTHON.replace("gateway.errors.ArchiveError", "pyarrow.lib.ArrowInvalid"),
        "pyarrow.lib.ArrowInvalid: date=2026-03-14/hour=12/a.parquet: cannot be read: Corrupt page",
        id="python",
    ),
    pytest.param(
        "Traceback (most recent call last):\n"
        "ModuleNotFoundError: No module named 'pyarrow.lib'; 'pyarrow' is not a package\n\tat A",
        "the Python of the executors has no 'pyarrow'; install the dependencies of"
        " 'gateway[reconcile]' there, or name such a Python in PYSPARK_PYTHON",
        id="no-module",
    ),
    pytest.param(
        "An error occurred while calling o26.parquet.\nCaused by: java.io.IOException: first\n"
        "\tat A\nCaused by: java.io.IOException: No space left on device\n\tat B",
        "java.io.IOException: No space left on device",
        id="java",
    ),
    pytest.param(
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent"
        " failure: Lost task 0.0 in stage 1.0 (TID 4) (10.0.0.1 executor 2):"
        " ExecutorLostFailure (executor 2 exited)\nDriver stacktrace:",
        "ExecutorLostFailure (executor 2 exited)",
        id="lost-task",
    ),
    pytest.param("one line\nanother", "one line", id="other"),
]


@dataclass(frozen=True)
class Throwable:
    """A Java exception as py4j shows it."""

    text: str
    cause: Throwable | None = None

    def toString(self) -> str:  # noqa: N802  # the name in Java
        return self.text

    def getCause(self) -> Throwable | None:  # noqa: N802
        return self.cause


class JavaError(Exception):
    def __init__(self, java: Throwable) -> None:
        super().__init__("An error occurred while calling o2614.parquet")
        self.java_exception = java


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_text_names_its_innermost_exception(text: str, expected: str) -> None:
    assert cause_in(text) == expected


def test_the_chain_of_causes_is_followed_to_its_end() -> None:
    inner = Throwable("java.io.IOException: No space left on device")
    java = Throwable("org.apache.spark.SparkException: Job aborted", Throwable("x: y", inner))

    assert root_cause(JavaError(java)) == "java.io.IOException: No space left on device"
    python = Throwable("org.apache.spark.SparkException: aborted", Throwable(PYTHON, inner))
    assert root_cause(JavaError(python)).startswith("date=2026-03-14/hour=12/a.parquet: cannot")
    assert root_cause(ValueError()) == "ValueError"
