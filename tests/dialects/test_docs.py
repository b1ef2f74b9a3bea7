"""The documents about names agree with the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.tables import ROOT, outdated_documents, with_tables
from gateway.cli.mapping.name_requests import answer_line
from tests.systems import SYSTEMS

DOCS = ROOT / "docs"


def _rows(page: Path, table: str) -> list[str]:
    """The rows of a generated table, without its header."""
    _, found, rest = page.read_text(encoding="utf-8").partition(f"<!-- table: {table} -->\n")
    assert found, f"{page}: no table {table}"
    return rest.partition("<!-- end")[0].splitlines()[2:]


def test_every_generated_table_is_up_to_date() -> None:
    assert not outdated_documents(), "run `make docs-tables`"


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_a_page_with_facts_and_examples(system: str) -> None:
    page = DOCS / "dialects" / f"{system}.md"

    assert _rows(page, f"dialect-facts {system}")
    assert len(_rows(page, f"dialect-names {system}")) >= 5
    assert len(_rows(page, f"dialect-subscriptions {system}")) >= 3


def test_the_overview_lists_every_system() -> None:
    rows = _rows(DOCS / "names.md", "dialects")

    assert [row.split("]")[0].removeprefix("| [") for row in rows] == list(SYSTEMS)


def test_a_wrong_cell_is_written_again() -> None:
    text = (
        "<!-- table: dialect-names ems -->\n"
        "| `ems` | `wrong` |\n| --- | --- |\n| `a/b.c` | `wrong` |\n"
        "<!-- end of table -->\n"
    )

    assert "| `a/b.c` | `a/b.c` | `a%2Fb/c` |" in with_tables(text)


def test_the_requests_of_the_page_get_the_answers_of_the_page() -> None:
    lines = (DOCS / "names.md").read_text(encoding="utf-8").splitlines()
    requests = [at for at, line in enumerate(lines) if line.startswith('    {"op"')]

    assert len(requests) >= 5
    for at in requests:
        assert answer_line(lines[at].strip().encode()) == lines[at + 1].strip().removeprefix("-> ")
