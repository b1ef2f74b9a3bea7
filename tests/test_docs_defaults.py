"""Defaults that documents and deployments print are those of the declarations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.settings_tables import DECLARATIONS
from gateway.config.process import DEFAULT_URL, WebSettings
from gateway.setting import fields_by_key

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
DEPLOYED = sorted(
    each for each in (ROOT / "deploy").rglob("*") if each.suffix in {".yaml", ".tpl", ".txt"}
)
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1}
# `max_hops` gateways (8), `receive_window_bytes` of its endpoint, 16 MiB
PRINTED = re.compile(
    r"`(?:\w+\.)?(?P<key>\w+)`[^`|(,\n]{0,20}(?:\(|, )(?P<number>\d[\d,]*)(?: (?P<unit>[KMG]iB|s))?"
    r"(?=[,;)|]| \|)"
)
PAGE = re.compile(r"(?:127\.0\.0\.1|localhost|name: web, \w+ort|targetPort): ?(80[0-9]{2})\b")
OTHERS = {8048, 8080}  # the second instance of a pair, Solace's own page


def defaults() -> dict[str, set[float]]:
    """The numbers that the declarations give each key."""
    found: dict[str, set[float]] = defaultdict(set)
    for kind in DECLARATIONS.values():
        for key, field in fields_by_key(kind).items():
            if isinstance(field.default, int | float):
                found[key].add(field.default)
    return found


def printed() -> Iterator[tuple[str, str, float]]:
    """The place, the key and the number of each default in a sentence."""
    known = defaults()
    for page in PAGES:
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            for found in PRINTED.finditer(line):
                if found["key"] in known:
                    value = float(found["number"].replace(",", "")) * UNITS[found["unit"] or ""]
                    yield f"{page.relative_to(ROOT)}:{number}", found["key"], value


def test_sentences_print_declared_defaults() -> None:
    known, found = defaults(), [*printed()]

    assert [each for each in found if each[2] not in known[each[1]]] == []
    assert {"max_hops", "receive_window_bytes", "stop_seconds"} <= {key for _, key, _ in found}


@pytest.mark.parametrize("path", [*PAGES, *DEPLOYED], ids=lambda path: path.name)
def test_the_port_of_the_page_is_the_declared_one(path: Path) -> None:
    found = {int(each) for each in PAGE.findall(path.read_text("utf-8"))}

    assert found <= {WebSettings().port, *OTHERS}


def test_the_address_of_the_page_is_printed() -> None:
    ports = [each for path in DEPLOYED for each in PAGE.findall(path.read_text("utf-8"))]

    assert DEFAULT_URL in (ROOT / "README.md").read_text("utf-8")
    assert ports.count(str(WebSettings().port)) > 9
