"""The commands of a page are found in every form in which a page prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.printed_commands import CAPTION, PAGES, ROOT, captions, page_commands

FORMS = [
    pytest.param("    gateway run a.yaml\n", ["gateway run a.yaml"], id="indented"),
    pytest.param("    $ pip install a\n", ["pip install a"], id="prompt"),
    pytest.param("    name = level\n    archive:\n      path: a\n", [], id="other-block"),
    pytest.param("```\nfoo --bar\n\nbaz\n```\n", ["foo --bar", "baz"], id="fence"),
    pytest.param("1. A\n\n   ```sh\n   foo\n   ```\n", ["foo"], id="fence-in-list"),
    pytest.param("```yaml\ngateway: {name: a}\n```\n", [], id="file"),
    pytest.param("```text\ngateway run a.yaml\n```\n", [], id="output-alone"),
    pytest.param("    make demo      # three minutes\n", ["make demo"], id="comment"),
    pytest.param("    make demo      takes minutes\n", ["make demo"], id="description"),
    pytest.param("    docker a   b\n", ["docker a   b"], id="aligned"),
    pytest.param("    A=b \\\n      gateway run c\n", ["A=b gateway run c"], id="continued"),
    pytest.param(
        "    gateway replay ARCHIVE [--dry-run] --from T [N...]\n",
        ["gateway replay ARCHIVE --from T"],
        id="synopsis",
    ),
    pytest.param("Run `gateway check\na.yaml`.", ["gateway check a.yaml"], id="sentence"),
    pytest.param("Of `gateway check` and `gateway replay`.", [], id="mention"),
    pytest.param("`gateway run a.yaml b`", ["gateway run a.yaml b"], id="wrong"),
    pytest.param("`a` gateway `b`", [], id="between-spans"),
]


@pytest.mark.parametrize(("text", "commands"), FORMS)
def test_a_form_is_found(text: str, commands: list[str]) -> None:
    assert [each.text for each in page_commands("p.md", text)] == commands


def test_a_block_has_the_reason_above_it() -> None:
    text = f"{CAPTION}it is late.\n\n```sh\na\nb\n```\n```\nc\n```\n`make d`\n"

    found = {each.text: each.caption for each in page_commands("p.md", text)}

    assert found == {"a": "it is late.", "b": "it is late.", "c": "", "make d": None}


@pytest.mark.parametrize("page", [each for pattern in PAGES for each in ROOT.glob(pattern)])
def test_a_reason_stands_above_a_block(page: Path) -> None:
    text = page.read_text("utf-8")

    assert text.count(CAPTION) == len(captions(text))


def test_a_console_has_commands_with_their_output() -> None:
    text = "# A\n```console\n$ a\n$ b c\nd\n# e\n```\n## F\n`make g`\n"

    found = [(each.section, each.text, each.output) for each in page_commands("p.md", text)]

    assert found == [("A", "a", ""), ("A", "b c", "d\n# e\n"), ("F", "make g", None)]
