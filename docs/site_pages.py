"""A hook of MkDocs: the pages of the site that stand outside `docs`, for `make docs`.

The README is the first page. The mappings have their own folder, with their files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README and the mappings."""
    text = (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=text))
    for path in (ROOT / "mappings/README.md", *(ROOT / "mappings").rglob("*.yaml")):
        name = path.relative_to(ROOT).as_posix()
        files.append(File(name, str(ROOT), config.site_dir, use_directory_urls=False))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401  # MkDocs passes more
    """Lead links from `docs` to the mappings, and set the texts of numbered lists apart.

    Python-Markdown needs four columns where CommonMark needs three, and an empty line behind them.
    """
    markdown = re.sub(r"^   (?=\S)", "    ", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^(    .*\n)(?=\d+\. )", r"\1\n", markdown, flags=re.MULTILINE)
    return markdown.replace("](../mappings/", "](mappings/")
