"""The root cause of an error of Spark: the innermost exception of Java or Python, as one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from gateway.errors import ReconcileError, first_line

SPARK_FAULTS: Final = (PySparkException, Py4JError)
_MAX_CAUSES: Final = 30  # of a chain, which may be a cycle
_TRACEBACK: Final = "Traceback (most recent call last)"
_RAISED: Final = re.compile(r"^[A-Za-z_][\w.]*(?:: |$)")
_CAUSED: Final = re.compile(r"^Caused by: (\S.*)$", re.MULTILINE)
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_LOST_TASK: Final = re.compile(r"Lost task [^\n]*?\): ([^\n]+)")


@contextmanager
def spark_faults(what: str) -> Iterator[None]:
    """Raise an error of Spark as one of a line: `what` failed, and the root cause.

    Raises:
        ReconcileError: Spark failed in the block.
    """
    try:
        yield
    except SPARK_FAULTS as fault:
        raise ReconcileError(f"spark: {what} failed: {root_cause(fault)}") from fault


def root_cause(fault: BaseException) -> str:
    """Return the innermost exception of an error of Spark, as one line."""
    java: Any = getattr(fault, "java_exception", None) or getattr(fault, "_origin", None)
    texts = [str(fault)] if java is None else []
    while java is not None and len(texts) < _MAX_CAUSES:
        texts.append(str(java.toString()))
        java = java.getCause()
    python = [text for text in texts if _TRACEBACK in text]
    return cause_in((python or texts)[-1]) or type(fault).__name__


def cause_in(text: str) -> str:
    """Return the innermost exception that a text of Spark contains; else its first line.

    A text with a Python traceback ends in the exception and its message, before Java's frames.
    """
    if _TRACEBACK in text:
        for line in text.rpartition(_TRACEBACK)[2].splitlines():
            if _RAISED.match(line):
                return _of_executors(line)
    for pattern in (_CAUSED, _LOST_TASK):
        if found := pattern.findall(text):
            return str(found[-1])
    return first_line(Exception(text)) if text else ""


def _of_executors(line: str) -> str:
    """Return the message of our own errors, and name and message of other exceptions."""
    if absent := _NO_MODULE.match(line):
        return (
            f"the Python of the executors has no {absent[1]!r}; install the dependencies of"
            " 'gateway[reconcile]' there, or name such a Python in PYSPARK_PYTHON"
        )
    name, _, message = line.partition(": ")
    return message if name.startswith("gateway.errors.") else line
