"""Write the generated tables of the documents, and the man page: `python -m docs.tables [--check]`.

A table stands between two comments, which a page shows as nothing:

    <!-- table: KIND ARGUMENT... -->
    <!-- end of table -->

`KIND` is a key of `TABLES`. Its function gets the arguments and the lines between the comments,
and returns the new lines.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from docs import (
    archive_tables,
    class_tables,
    dialect_tables,
    man_page,
    settings_tables,
    source_blocks,
)

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"(?P<start><!-- table: (?P<words>[^>]+) -->\n)(?P<body>.*?)(?P<end><!-- end of table -->)",
    re.DOTALL,
)

Table = Callable[[Sequence[str], Sequence[str]], list[str]]
TABLES: Mapping[str, Table] = {
    "archive": archive_tables.columns,
    "archive-values": archive_tables.values,
    "brokers": dialect_tables.brokers,
    "class-advice": class_tables.advice,
    "classes": class_tables.classes,
    "cuts": class_tables.cuts,
    "dead-letter-rules": class_tables.dead_letter_rules,
    "dialects": dialect_tables.overview,
    "dialect-facts": dialect_tables.facts,
    "dialect-names": dialect_tables.names,
    "dialect-subscriptions": dialect_tables.subscriptions,
    "settings": settings_tables.settings,
    "source": source_blocks.source,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write every outdated document, or with `--check` list them and return 1."""
    parser = argparse.ArgumentParser(description="Write the generated tables of the documents")
    parser.add_argument("--check", action="store_true", help="only list outdated documents")
    args = parser.parse_args(arguments)
    outdated = outdated_documents()
    for path, text in outdated.items():
        print(path.relative_to(ROOT))
        if not args.check:
            path.write_text(text, encoding="utf-8")
    return int(args.check and bool(outdated))


def outdated_documents() -> dict[Path, str]:
    """Return the new text of every document with an outdated table."""
    found: dict[Path, str] = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        updated = with_tables(text)
        if updated != text:
            found[path] = updated
    if (page := man_page.outdated()) is not None:
        found[man_page.PATH] = page
    return found


def with_tables(text: str) -> str:
    """Return `text` with every table written again."""
    return BLOCK.sub(_written, text)


def _written(block: re.Match[str]) -> str:
    kind, *arguments = block["words"].split()
    lines = TABLES[kind](arguments, block["body"].splitlines())
    return block["start"] + "\n".join(lines) + "\n" + block["end"]


if __name__ == "__main__":
    raise SystemExit(main())
