"""The package as a zip file, for executors that have its dependencies but not the package."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import gateway


def zip_package(folder: Path) -> Path:
    """Write `gateway.zip` into `folder`, with the code and its data files."""
    source = Path(gateway.__file__).parent
    path = folder / "gateway.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(source.parent))
    return path
