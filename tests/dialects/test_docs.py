"""The tables of `docs/dialects` are true: every cell is what the gateway makes of the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.dialects.registry import DIALECTS
from gateway.errors import SubjectError, TranslationError
from gateway.translate.answers import answer_line
from gateway.translate.names import Translator
from gateway.translate.subscriptions import translate_pattern

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "dialects"


def _rows(system: str, heading: str) -> list[list[str]]:
    """The cells of the table under `heading`, its first row the systems it is for."""
    text = (PAGES / f"{system}.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    lines = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [rows[0], *rows[2:]]


def _name(system: str, target: str, name: str) -> str:
    try:
        return f"`{Translator(DIALECTS[system], DIALECTS[target]).name(name)}`"
    except (SubjectError, TranslationError) as error:
        return f"refused: {error.rule}"


def _subscription(system: str, target: str, text: str) -> str:
    try:
        found = translate_pattern(text, DIALECTS[system], DIALECTS[target])
    except (SubjectError, TranslationError) as error:
        return f"refused: {error.rule}"
    return ", ".join(f"`{each}`" for each in found.patterns) + ("" if found.exact else " + test")


@pytest.mark.parametrize("system", DIALECTS)
def test_names_become_what_the_page_says(system: str) -> None:
    (_, *targets), *rows = _rows(system, "What names become")

    assert len(targets) == len(DIALECTS) - 1
    assert len(rows) >= 5
    for name, *cells in rows:
        made = [_name(system, target.strip("`"), name.strip("`")) for target in targets]
        assert cells == made, name


@pytest.mark.parametrize("system", DIALECTS)
def test_subscriptions_become_what_the_page_says(system: str) -> None:
    (_, *targets), *rows = _rows(system, "What subscriptions become")

    assert len(rows) >= 3
    for text, *cells in rows:
        made = [_subscription(system, target.strip("`"), text.strip("`")) for target in targets]
        assert cells == made, text


def test_the_questions_and_answers_of_the_page_are_true() -> None:
    lines = (DOCS / "names.md").read_text(encoding="utf-8").splitlines()
    asked = [at for at, line in enumerate(lines) if line.startswith('    {"op"')]

    assert len(asked) >= 5
    for at in asked:
        assert answer_line(lines[at].strip().encode()) == lines[at + 1].strip().removeprefix("-> ")
