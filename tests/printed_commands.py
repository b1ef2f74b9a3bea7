"""The commands that the documents print, in code blocks and in their sentences."""

from __future__ import annotations

import io
import re
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gateway.cli import make_parser

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/**/*.md", "mappings/*.md")
PROGRAMS = {  # they begin a command of an indented block, which may also be an output or a grammar
    "apt-get", "curl", "deploy/spark-submit.sh", "docker", "gateway", "journalctl", "kill",
    "kubectl", "make", "mosquitto", "mosquitto_pub", "mosquitto_sub", "pip", "pytest", "python",
    "python3", "spark-submit", "sudo", "systemctl",
}  # fmt: skip
INLINE = {"gateway", "make", "mosquitto_pub", "mosquitto_sub", "python"}
SHELL = {"", "sh", "console"}  # languages of fences; other fences hold files and outputs

CAPTION = "Not run as printed: "  # the line above a fenced block, with the reason
_FENCE = re.compile(r" *```(\w*)")
_HEADING = re.compile(r"#+ (.+)")
_SPAN = re.compile(r"`([^`]+)`")
_COMMENT = re.compile(r"\s+#\s.*|\s{4,}\S.*")  # a wide gap separates a description, too
_OPTIONAL = re.compile(r" \[[^]]*\]")
_VARIABLE = re.compile(r"[A-Z_]+=\S* ")


@dataclass(frozen=True, slots=True)
class Command:
    """A printed command; `output` is the text below it in a console, and None elsewhere.

    `caption` has the reason why its fenced block does not run as printed, or "" where the block
    runs; it is None for a command outside a block.
    """

    page: str
    section: str
    text: str
    output: str | None = None
    caption: str | None = None

    @property
    def words(self) -> list[str]:
        """Return the words after the variables that the command sets."""
        text = self.text
        while found := _VARIABLE.match(text):
            text = text[found.end() :]
        return text.split()


def printed_commands() -> list[Command]:
    """Return every command at the first place that prints it, in a block and outside one."""
    paths = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    first: dict[tuple[object, ...], Command] = {}
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        for command in page_commands(name, path.read_text("utf-8")):
            kind = (command.caption is None, bool(command.caption))
            first.setdefault((command.text, *kind), command)
    return list(first.values())


def page_commands(page: str, text: str) -> Iterator[Command]:
    """Yield the commands of a page by section: of its blocks, then of its sentences.

    A synopsis is the command without its optional parts.
    """
    for section, body in sections(text):
        prose: list[str] = []
        for language, caption, line in _lines(re.sub(r" *\\\n *", " ", body)):
            if language is None:
                prose.append(line)
            elif language != "console":
                yield Command(page, section, _command(line), caption=caption)
        yield from _sessions(page, section, body)
        yield from _spans(page, section, " ".join(prose))


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sections of a page with their headings; a fence may have lines like headings."""
    title, body, fenced = "", list[str](), False
    for line in text.splitlines():
        fenced ^= _FENCE.match(line) is not None
        if not fenced and (heading := _HEADING.match(line)):
            yield title, "\n".join(body)
            title, body = heading[1], []
        else:
            body.append(line)
    yield title, "\n".join(body)


def fences(language: str, body: str) -> list[str]:
    """Return the contents of the fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", body, re.DOTALL | re.MULTILINE)


def captions(body: str) -> dict[int, str]:
    """Return the reason above each fence that has one, by the number of the fence's line."""
    lines = body.splitlines()
    return {
        number + 2: line.strip().removeprefix(CAPTION)
        for number, line in enumerate(lines[:-2])
        if line.strip().startswith(CAPTION) and not lines[number + 1]
    }


def _lines(body: str) -> Iterator[tuple[str | None, str | None, str]]:
    """Yield commands with the language and caption of their block, and lines of sentences."""
    language, caption, reasons = None, "", captions(body)
    for number, line in enumerate(body.splitlines()):
        if fence := _FENCE.match(line):
            language = fence[1] if language is None else None
            caption = reasons.get(number, "")
        elif language is not None:
            if language in SHELL and line.strip():
                yield language, caption, line
        elif line.startswith("    ") and _program(_command(line)) in PROGRAMS:
            yield "", None, line
        else:
            yield None, None, line


def _command(line: str) -> str:
    text = _COMMENT.sub("", line.strip().removeprefix("$ "))
    return _OPTIONAL.sub("", text).strip()


def _program(text: str) -> str:
    return next(iter(Command("", "", text).words), "")


def _sessions(page: str, section: str, body: str) -> Iterator[Command]:
    for block in fences("console", body):
        for session in re.split(r"(?m)^\$ ", block)[1:]:
            line, _, output = session.partition("\n")
            yield Command(page, section, line, output, caption="")


def _spans(page: str, section: str, prose: str) -> Iterator[Command]:
    for span in _SPAN.findall(prose):
        command = Command(page, section, " ".join(span.split()))
        if _program(command.text) in INLINE and len(command.words) > 1 and is_complete(command):
            yield replace(command, text=_OPTIONAL.sub("", command.text))


def is_complete(command: Command) -> bool:
    """Return whether no argument is absent; a sentence may name a command alone."""
    if command.words[0] != "gateway":
        return True
    words = command.words[1:]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as error:
        try:
            _parser(words[0]).parse_args(words)
        except SystemExit:
            return "arguments are required" not in error.getvalue()
    return True


@cache
def _parser(command: str) -> ArgumentParser:
    """Keep the parser of a command: the pages print each command many times."""
    return make_parser(command)
