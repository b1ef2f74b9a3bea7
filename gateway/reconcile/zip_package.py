"""The package as one zip file, for machines that have its dependencies but not itself."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import gateway


def packed(folder: Path) -> Path:
    """`gateway.zip` in `folder`: code, and the files that lie beside it."""
    source = Path(gateway.__file__).parent
    path = folder / "gateway.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(source.parent))
    return path
