"""`python -m gateway.night.archive.segments ARCHIVE`: convert closed journals to segments."""

from __future__ import annotations

import gc
import os
import sys
from importlib.abc import MetaPathFinder


class _WithoutPandas(MetaPathFinder):
    """Hides pandas, which PyArrow loads where it is installed: longer than most conversions."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """Find no module.

        Raises:
            ModuleNotFoundError: the module is pandas.
        """
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


sys.meta_path.insert(0, _WithoutPandas())
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others keep 50 MiB that are free
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts one for each core

from gateway.night.archive.segments.convert import main  # noqa: E402  # it loads PyArrow

status = main(sys.argv[1:])
gc.freeze()  # at its end Python would look at each object of PyArrow's modules
sys.exit(status)
