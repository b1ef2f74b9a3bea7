"""Links, files and commands that the documents name exist, and commands have those options."""

from __future__ import annotations

import argparse
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli import make_parser
from gateway.endpoints.registry import ENDPOINT_KINDS

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("mappings/*.md")],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
FILE = re.compile(
    r"`((?:deploy|docs|gateway|mappings|tests|benchmarks)/(?![A-Z])[\w./*-]*(?:/|\.[a-z]+))`"
)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^ {4,}(?:\$ )?|^\$ |`|&& )gateway (?=[a-z])([^`#|;&\n]*)", re.MULTILINE)
MODULE = re.compile(r"python -m (gateway[\w.]*|benchmarks[\w.]*|deploy[\w.]*)")

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES]
)


def anchors(page: Path) -> set[str]:
    """The headings of `page`, as links spell them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@each_page
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), (target, anchor)


@each_page
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = FILE.findall(page.read_text("utf-8"))
    exact = [each.rstrip("/") for each in named if "NAME" not in each]

    assert [each for each in exact if not any(ROOT.glob(each))] == []


@each_page
def test_modules_that_a_page_runs_exist(page: Path) -> None:
    named = {each.replace(".", "/") for each in MODULE.findall(page.read_text("utf-8"))}
    entries = ("{}.py", "{}/__main__.py")

    assert [
        each for each in named if not any((ROOT / form.format(each)).exists() for form in entries)
    ] == []


@each_page
def test_commands_of_a_page_exist_with_their_options(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    text = FENCE.sub(lambda code: code.group().replace("\n", "\n    "), text)

    assert [fault for line in COMMAND.findall(text) for fault in faults(line)] == []


def faults(line: str) -> Iterator[str]:
    """The words of a command line that its parser does not know."""
    words = words_of(line)
    parser: argparse.ArgumentParser = make_parser(words[0])
    for number, word in enumerate(words):
        choices = subcommands(parser)
        if choices and word in choices:
            parser = choices[word]
        elif choices and number < 1:
            yield f"gateway {line}: no command {word!r}"
            return
    known = {option for action in parser._actions for option in action.option_strings}  # noqa: SLF001  # argparse has no other way to list them
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line):
        if option not in known:
            yield f"gateway {line}: no option {option}"


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # an apostrophe of the sentence around it
        return line.split()


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def test_the_readme_and_the_site_have_the_pages_in_one_order() -> None:
    """Try, map, connect, run, watch, prove, change: the tutorials and the names stand in a list."""
    listed = re.findall(
        r"^ +- (?:.*: )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    _, _, more = (ROOT / "README.md").read_text("utf-8").partition("\n## More\n")
    linked = [each.removeprefix("docs/") for each in re.findall(r"\]\(([\w/-]+\.md)\)", more)]

    within = ("dialects/", "decisions/")
    assert [*dict.fromkeys(linked)] == [
        each
        for each in listed
        if (not each.startswith(within) and each != "index.md") or each == "decisions/index.md"
    ]


WORDS = {"jms": "EMS", "ibm": "IBM MQ"}  # for kinds and systems whose name is not a product


@pytest.mark.parametrize(
    ("page", "line"),
    [
        pytest.param("docs/man_page.py", "carries messages between", id="man-page"),
        pytest.param("mkdocs.yml", "site_description:", id="site"),
        pytest.param("pyproject.toml", "description =", id="package"),
        pytest.param("README.md", "A bridge between", id="readme"),
        pytest.param("docs/configuration.md", "kind: mqtt  ", id="configuration"),
    ],
)
def test_a_list_of_systems_has_every_kind_of_endpoint(page: str, line: str) -> None:
    _, _, rest = (ROOT / page).read_text("utf-8").partition(line)

    shown = rest[:200].lower()
    for kind in ENDPOINT_KINDS.values():
        if not kind.in_process:
            names = {kind.name, WORDS.get(kind.name, kind.name).lower()}
            assert any(each in shown for each in names), kind.name


def test_a_line_of_the_changelog_stands_once() -> None:
    lines = re.findall(r"^- .+$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)

    assert [each for each, count in Counter(lines).items() if count > 1] == []


# Readers had to read each of these twice.
REWRITTEN = (
    "Names are translated, not swapped.",
    "residual: not 'orders' itself",
    "or accept that names are refused",
    "Cut so that each name at the source belongs to one gateway: its routes and its filters do not",
    "shows also what a stopped gateway does not receive",
    "its time counts from before it asked",
    "an answer may take as long as it likes",
    "messages in its hands are older than those that the next holder sent",
    "Dead letters go to `dead_letters.endpoint`, which needs no spool and an archive",
    "That run, and each further one of the same day, repeats the verdicts of the first",
    "no figure of the report is a share of all, and none is said to be zero",
    "The second one is `clean` for scripts",
    "at QoS 0, the 1,000th equal message in a row, each so soon, is cut",
    "A packet id of QoS 2 that the broker uses again is no repeat.",
    "one of a service that has the subject, too",
    "none: that of the stream counts",
    "A message of the same window that finds room before it goes first",
    "A row counts once at any moment of a compaction, which a plain reader of the Parquet files",
    "`keep_days: 30` removes a day once it is older than the last 30 whole ones",
    "A value is looked for in texts about its own section only.",
    "A source that has not noticed the end of its connection, before its next heartbeat, counts",
)


@each_page
def test_a_page_has_no_sentence_that_was_rewritten(page: Path) -> None:
    text = " ".join(page.read_text("utf-8").split())

    assert [each for each in REWRITTEN if each.lower() in text.lower()] == []
