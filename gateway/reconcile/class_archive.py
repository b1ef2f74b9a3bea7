"""Writes the class-data archive of Spark's Java process, which then takes a third less time.

    python -m gateway.reconcile.class_archive

Once for an installation, as its owner, in about a minute: Java stores the classes that small
nights load, and later nights map them into memory (JEP 350). Java ignores a file of another Java
or PySpark version; without one a night only takes longer.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import date
from itertools import product
from pathlib import Path
from typing import Final

from gateway.errors import GatewayError, ReconcileError, first_line
from gateway.reconcile.job import Job, reconcile
from gateway.reconcile.session import CLASS_ARCHIVE, QUICK_JAVA, spark_session
from gateway.trial.synthetic.faults import Fault
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic

_DAY: Final = date(2000, 1, 1)
_MESSAGES: Final = 4_000


def main() -> int:
    try:
        write(CLASS_ARCHIVE)
    except (GatewayError, OSError) as error:
        sys.stderr.write(f"{CLASS_ARCHIVE}: not written: {first_line(error)}\n")
        return 1
    sys.stdout.write(f"{CLASS_ARCHIVE}: {CLASS_ARCHIVE.stat().st_size / 1e6:.0f} MB\n")
    return 0


def write(path: Path) -> None:
    """Reconcile a small day by sets and in full, and let Java write the classes to `path`.

    Raises:
        ReconcileError: Spark does not start or finish, or Java writes no file.
        OSError: the folder of `path` cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".classes-") as folder:
        archive, new = Path(folder, "archive"), Path(folder, path.name)
        generate(archive, Traffic(_MESSAGES, _DAY), dict.fromkeys(Fault, 1))
        with spark_session(
            "local[1]",
            {"spark.driver.extraJavaOptions": f'{QUICK_JAVA} "-XX:ArchiveClassesAtExit={new}"'},
        ):
            for full, on_executors in product((False, True), repeat=2):
                job = Job(archive, _DAY, full=full, on_executors=on_executors)
                reconcile(job, lambda *_: None)
        if not new.exists():
            raise ReconcileError("Java wrote no classes; Java 17 or later of the JDK's line does")
        new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
