"""The table of the tutorials names what each walk uses: extras of the wheel, packages of Debian."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gateway.endpoints.registry import ENDPOINT_KINDS
from tests.tutorials.steps import TypedCommand, steps_of
from tests.tutorials.walks import ROOT

FOLDER: Final = ROOT / "docs/tutorials"
INDEX: Final = (FOLDER / "index.md").read_text("utf-8")
PAGES: Final = sorted(FOLDER.glob("*-*.md"))
EVERYWHERE: Final = {  # programs of the shell, and of packages that every Debian has
    "cat", "date", "echo", "export", "grep", "kill", "ln", "mkdir", "sed", "seq", "sleep", "sort",
    "tail", "uniq", "wait", "wc",
}  # fmt: skip
PACKAGES: Final = {  # the packages that have the other programs, or what a program needs
    "curl": {"curl"},
    "gateway broker activemq": {"activemq", "default-jre-headless", "libmqtt-client-java"},
    "gateway reconcile": {"default-jre-headless"},
    "mosquitto": {"mosquitto"},
    "mosquitto_pub": {"mosquitto-clients"},
    "mosquitto_sub": {"mosquitto-clients"},
    "nats-server": {"nats-server"},
    "openssl": {"openssl"},
}
OPERATORS: Final = {";", "|", "||", "&", "&&", "(", "do", "until"}


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line, without redirections and assignments."""
    words: list[str] = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for word in [*lexer, ";"]:
        if word in OPERATORS:
            if words:
                yield words
            words = []
        elif words or not re.match(r"[A-Z_]+=|done$", word):
            words.append(word)


def needs(page: Path) -> tuple[set[str], set[str]]:
    """Return the extras and the packages that the steps of a page use."""
    text = page.read_text("utf-8")
    named = re.findall(r"\bkind: (\w+)|gateway init --from (\w+) --to (\w+)", text)
    kinds = [ENDPOINT_KINDS.get(name) for names in named for name in names]
    extras = {kind.extra for kind in kinds if kind and kind.extra}
    packages = set[str]()
    for step in steps_of(text):
        if isinstance(step, TypedCommand):
            packages |= packages_of(step)
            extras |= {"reconcile"} if step.text.startswith("gateway reconcile ") else set()
    return extras, packages


def packages_of(step: TypedCommand) -> set[str]:
    packages = set[str]()
    for words in commands(step.text):
        name = " ".join(words)
        found = {each for each in PACKAGES if f"{name} ".startswith(f"{each} ")}
        assert found or words[0] in {*EVERYWHERE, "gateway"}, words
        for each in found:
            packages |= PACKAGES[each]
    return packages


@pytest.mark.parametrize("page", PAGES, ids=[each.stem for each in PAGES])
def test_the_table_names_what_a_tutorial_uses(page: Path) -> None:
    (row,) = re.findall(rf"^\| \[[^]]+\]\({page.name}\) .*$", INDEX, re.MULTILINE)
    named = [set(re.findall(r"`([\w-]+)`", cell)) for cell in row.split(" | ")[-2:]]

    assert named == [*needs(page)]


def test_the_command_of_the_page_installs_the_packages_of_the_table() -> None:
    (line,) = re.findall(r"^apt-get install --no-install-recommends (.*)$", INDEX, re.MULTILINE)

    used = [needs(page)[1] for page in PAGES]
    assert set(line.split()) == set().union(*used)
