"""Start of the Python processes that run Spark's local tasks: `spark.python.daemon.module`.

Before each task, Spark empties the caches of the import system, and Python lists each archive on
its path again: those of Spark and a Java archive took two thirds of the processor time of a small
night. Spark is installed beside the gateway, so that a local task needs none of them.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import PathFinder
from typing import Final

_ARCHIVES: Final = (".zip", ".jar")
_INSTALLED: Final = ("pyspark", "py4j")


def drop_archives() -> None:
    """Drop archives from the path of imports, unless Spark's packages are only in them."""
    folders = [entry for entry in sys.path if not entry.endswith(_ARCHIVES)]
    if all(PathFinder.find_spec(name, folders) for name in _INSTALLED):
        for entry in set(sys.path).difference(folders):
            sys.path_importer_cache.pop(entry, None)
        sys.path[:] = folders


if __name__ == "__main__":
    drop_archives()
    from pyspark.daemon import manager

    from gateway.night.reconcile import job  # noqa: F401  # once for all processes, which are its forks

    gc.freeze()  # Spark collects garbage after each task
    manager()  # type: ignore[no-untyped-call]  # pyspark left it untyped
