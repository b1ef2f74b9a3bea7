"""The program for `spark-submit`: commands that are Spark jobs, in the session it configures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from gateway import cli
from gateway.errors import GatewayError
from gateway.terminal.text import visible_lines

JOBS: Final = (("reconcile",), ("archive", "compact"), ("archive", "names"))


def main(arguments: Sequence[str]) -> int:
    """Run a command of `gateway`, with the same exit status."""
    try:
        check(arguments)
        from gateway.night.reconcile.session import submitted_session  # may be absent

        with submitted_session() as spark:
            return cli.main([*arguments, "--master", str(spark.sparkContext.master)])
    except GatewayError as error:
        print(visible_lines(f"gateway: {error}"), file=sys.stderr)
        return 2


def check(arguments: Sequence[str]) -> None:
    """Check that `arguments` are a Spark job.

    Raises:
        GatewayError: they are another command, or set a master.
    """
    if not any(tuple(arguments[: len(job)]) == job for job in JOBS):
        known = ", ".join(repr(" ".join(job)) for job in JOBS)
        given = " ".join(arguments[:2])
        raise GatewayError(f"spark-submit: {given!r} is no Spark job; use one of {known}")
    if any(word == "--master" or word.startswith("--master=") for word in arguments):
        raise GatewayError("--master: spark-submit sets the master; set MASTER for the script")
