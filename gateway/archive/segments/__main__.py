"""`python -m gateway.archive.segments ARCHIVE`: convert closed journals to segments."""

from __future__ import annotations

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

from gateway.archive.segments.convert import main  # noqa: E402  # it loads PyArrow

sys.exit(main(sys.argv[1:]))
