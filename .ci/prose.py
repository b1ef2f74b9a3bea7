"""Check the English of documents, docstrings, comments and messages against a few habits.

Run by `make check`; with paths, only those files are read. The list is short on purpose: it keeps
out openings that stand in for a noun and words that only this project would use.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPENINGS = re.compile(r"(?:What|Who|Whose|Whoever|Those|Of|Whom)\b")
WHERE = re.compile(r"Where\b(?![^.]*,)")  # "Where X holds, do Y" is a condition, not a noun
SENTENCE = re.compile(r"(?:^|(?<=[.:;!?] )|(?<=[.!?]\n)|(?<=\| ))[\"'(*_`]*(?=[A-Z])")
WORDS = {
    r"\bthe middle\b(?! of)": "the canonical form",
    r"\bbefall(?:s|en)?\b": "happen to",
    r"\banew\b": "again",
    r"\bnobody's\b": "no ...",
    r"\bis told\b|\bare told\b": "is reported",
    r"\bgoes forth\b|\bway forth\b": "forward direction",
    r"\bwhat it owes\b|\bstill owes\b|\bowes an end\b": "pending",
    r"\bthe business of\b": "belongs to",
    r"\bbecomes? of (?:it|them|messages?|each)\b": "the outcome of",
    r"\btaken for\b": "treated as",
    r"\bhave? a word\b": "",
    r"\bin vain\b": "without effect",
    r"\bby hand\b(?! \()": "manually",
    r"\bno more than\b": "at most",
    r"\bin reach\b": "readable, reachable",
    r"\bof ours\b": "of the gateway",
    r"\bnobody has\b": "no ... has",
    r"(?<!not), too(?=[.;:]|$)": "also ..., before what it concerns",
    r"\bsays? (?:so|nothing) of\b": "",
    r"\b(?:by|from|in|over) [^.,;:()|]{1,40} alone\b": "only by ..., only from ...",
    r"\bspelt\b": "spelled",
    r"(?<!here )\b(?:is|are|was|were) no (?!longer|more|other|less|later)": "is not a ...",
    r"(?:^|[.;] )[Tt]hat of\b|[;.] those of\b": "the noun that `that` or `those` stands for",
}
SUSPECT = re.compile("|".join([OPENINGS.pattern, WHERE.pattern, *WORDS]))
NO_PROSE = ("# type:", "# noqa", "#!")
SUFFIXES = {".py", ".md"}
LEFT_OUT = ("docs/licences.md", "docs/glossary.md", "LICENSE", "benchmarks/relay_load.py")


def main(arguments: list[str]) -> int:
    """Print a line for each finding and return 1 when there is one."""
    paths = [Path(each).resolve() for each in arguments] or tracked()
    found = [line for path in paths for line in findings(path)]
    print("\n".join(found) or "prose: no findings")
    return 1 if found else 0


def tracked() -> list[Path]:
    """Every text file of the project that people read."""
    listed = subprocess.run(
        ["/usr/bin/env", "git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    kept = (each for each in listed if Path(each).suffix in SUFFIXES and each not in LEFT_OUT)
    return [ROOT / each for each in kept if (ROOT / each).is_file()]


def findings(path: Path) -> Iterator[str]:
    """One line for each habit in the prose of `path`, with its place."""
    text = path.read_text(encoding="utf-8")
    if not SUSPECT.search(text):  # parsing takes a hundred times as long
        return
    parts = python_prose(text) if path.suffix == ".py" else markdown_prose(text)
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for line, part in parts:
        for reason in faults(part):
            yield f"{shown}:{line}: {reason}: {' '.join(part.split())[:90]!r}"


def faults(text: str) -> Iterator[str]:
    """The habits in one docstring, comment or paragraph."""
    for start in SENTENCE.finditer(text):
        rest = re.split(r"[.;](?:\s|$)|\s\|", text[start.end() :], maxsplit=1)[0]
        opening = OPENINGS.match(rest) or WHERE.match(rest)
        if opening and not rest.rstrip().endswith("?"):
            yield f"opens with {opening.group()!r} in place of a noun"
    for pattern, better in WORDS.items():
        if word := re.search(pattern, text):
            yield f"{word.group()!r}" + (f"; write {better!r}" if better else "")


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings and comments of a module."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and (prose := ast.get_docstring(node)):
            yield node.body[0].lineno, prose
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(NO_PROSE):
            yield token.start[0], token.string.lstrip("# ")


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table rows of a page, without its code."""
    text = re.sub(r"(?ms)^```.*?^```", lambda code: "\n" * code.group().count("\n"), text)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\|)))", text):
        stripped = re.sub(r"^(?:\s*(?:[-*>#]+|\d+\.)\s)+", "", block.strip())
        if stripped and not block.startswith("    "):
            yield line + len(block) - len(block.lstrip("\n")), re.sub(r"^\|\s*", "", stripped)
        line += block.count("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
