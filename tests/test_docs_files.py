"""Every YAML block of the documents is read by the gateway, or by a test of its own.

Every block of Python is legal, and imports what is there.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent, indent

import pytest
import yaml

from gateway.config.load import load
from gateway.errors import ConfigErrors
from tests.printed_commands import CAPTION

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("mappings/*.md")])
BLOCK = r"^ *```{}[^\n]*\n(.*?)^ *```$"
ELSEWHERE = {  # the begin of a block, and the test that reads it
    "# compose.yaml\n": "tests/deploy/test_artefacts.py",
    "# values: ": "tests/deploy/test_chart.py",
}
PROOFS = "docs/proofs.md:"  # tests/proofs/test_doc.py reads its blocks
EXTENSION = "docs/extending.md:"  # its blocks are parts of one module, which a test installs
WRONG = "# wrong.yaml\n"  # README.md shows its errors
PARTS = {  # the first key of a part of a section, and the section around it
    "from": "routes:\n  part:\n",
    "to": 'routes:\n  part:\n    from: {endpoint: plant, pattern: "{line}/{rest...}"}\n',
    "url": "endpoints:\n  part:\n    kind: solace\n",
    "work": "endpoints:\n",
}
# Rules about an endpoint, a route, a folder or an included file, which another part has.
OF_OTHER_PARTS = {"unknown-endpoint", "no-routes", "no-spool", "unreadable"}


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield each block of a language with its place."""
    block = re.compile(BLOCK.format(language), re.DOTALL | re.MULTILINE)
    for page in PAGES:
        for number, text in enumerate(block.findall(page.read_text("utf-8")), 1):
            yield f"{page.relative_to(ROOT).as_posix()}:{number}", dedent(text)


BLOCKS = {
    place: text
    for place, text in blocks("yaml")
    if not place.startswith(PROOFS) and not text.startswith((*ELSEWHERE, WRONG))
}
PYTHON = dict(blocks("python"))
RUN = {  # blocks of Python, and the test that runs each as it is pasted
    "docs/archive.md:1": "tests/night/reconcile/test_queries.py",
    "docs/archive.md:2": "tests/archive/test_recipes.py",
    "docs/operations.md:1": "tests/archive/test_recipes.py",
    "docs/queries.md:1": "tests/night/reconcile/test_queries.py",
    "docs/rabbitmq.md:1": "tests/brokers/test_rabbitmq_docs.py",
}


@pytest.mark.parametrize("text", BLOCKS.values(), ids=BLOCKS.keys())
def test_the_gateway_reads_a_block(text: str, tmp_path: Path) -> None:
    first = next(iter(yaml.safe_load(text)))
    around = PARTS.get(first, "")
    depth = " " * (4 if around.count("\n") > 1 else 2 if around else 0)
    file = tmp_path / "gateway.yaml"
    file.write_text(around + indent(text, depth))
    try:
        load(file, without_secrets=True)
    except ConfigErrors as errors:
        own = [str(each) for each in errors.findings if each.rule not in OF_OTHER_PARTS]
        assert own == []


@pytest.mark.parametrize(("begin", "test"), ELSEWHERE.items())
def test_a_block_that_is_left_out_has_a_test(begin: str, test: str) -> None:
    assert [text for _, text in blocks("yaml") if text.startswith(begin)]
    assert begin.strip().rstrip(":") in (ROOT / test).read_text("utf-8").replace("\\.", ".")


@pytest.mark.parametrize("text", PYTHON.values(), ids=PYTHON.keys())
def test_a_block_of_python_imports_what_is_there(text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gateway."):
            module = import_module(str(node.module))
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


def test_a_block_of_python_runs_or_says_why_it_does_not() -> None:
    said = re.compile(rf"^ *{CAPTION}.*\n\n *```python", re.MULTILINE)
    text = {page: page.read_text("utf-8") for page in PAGES}
    captioned = sum(len(said.findall(each)) for each in text.values())
    elsewhere = [each for each in PYTHON if not each.startswith(EXTENSION) and each not in RUN]

    assert len(elsewhere) == captioned
    assert [each for each in RUN if each not in PYTHON] == []
    assert [each for each in RUN.values() if not (ROOT / each).exists()] == []


@pytest.mark.parametrize("place", [each for each in PYTHON if not each.startswith(EXTENSION)])
def test_a_block_of_python_has_all_its_names(place: str) -> None:
    """A block that is pasted alone must not end with a NameError."""
    text = PYTHON[place]
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "-q", "-"]
    ran = subprocess.run(ruff, input=text, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stdout


FENCES = {  # the languages of all fences, each with the test that reads them
    "": "tests/test_docs_commands.py",
    "conf": "tests/imports/test_command.py",
    "console": "tests/test_docs_commands.py",
    "ini": "tests/tutorials/walk.py",
    "python": "tests/test_docs_files.py",
    "sh": "tests/test_docs_commands.py",
    "sql": "tests/night/reconcile/test_queries.py",
    "text": "",  # an output or a grammar
    "toml": "tests/extension/test_extension.py",
    "yaml": "tests/test_docs_files.py",
}


def test_each_fence_has_a_language_that_a_test_reads() -> None:
    found = {
        (page.relative_to(ROOT).as_posix(), language)
        for page in PAGES
        for language in re.findall(r"^ *```(\w*)(?: \w+)?\n(?:.*?)^ *```$",
                                   page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    }  # fmt: skip
    assert {each for each in found if each[1] not in FENCES} == set()
    assert {each for each in FENCES.values() if each and not (ROOT / each).exists()} == set()
