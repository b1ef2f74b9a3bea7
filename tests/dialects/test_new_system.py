"""A system registered at run time gets the laws, the proofs and the page.

The system is invented and resembles NATS. One dialect and one row of the test table describe it,
and no other file mentions it. The commands are tried with a package: tests/extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import dialect_tables
from gateway.cli import main
from gateway.cli.mapping.name_requests import answer
from gateway.config.load import load
from gateway.dialects.dialect import NUL_FORBIDDEN, Dialect, Prohibition, wildcards_forbidden
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.dialects.registry import DIALECTS, check, find_dialect
from gateway.errors import GatewayError
from gateway.model import dead_letter_rule as rules
from gateway.model.limits import Limit, Unit
from gateway.web.lookup import look_up
from tests.dialects.rules import dotted_selects, legal_dotted_pattern
from tests.proofs.routes import findings, route
from tests.strategies import PIECES, pairs
from tests.systems import SYSTEMS, System, legal_name, selects
from tests.translate.laws import check_covering, check_round_trip

GUIDE = "The rules of an invented system"
WHITE_SPACE = " \t\r\n"

INVENTED = Dialect(
    name="invented",
    level_noun="token",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    reference=GUIDE,
    empty_levels=False,
    empty_levels_in_patterns=False,
    forbidden={
        **wildcards_forbidden("*>"),
        **dict.fromkeys(WHITE_SPACE, Prohibition(rules.WHITE_SPACE, "white space ends a subject")),
        **NUL_FORBIDDEN,
    },
    prefix_rules=(PrefixRule("$", PrefixMapping.SWAP, reserved=("$SYS", "$JS")),),
    shared_prefix="$queue.",
    limits=(Limit(Unit.BYTES, 512, GUIDE),),
    advised_limits=(Limit(Unit.LEVELS, 16, GUIDE),),
)


def _is_legal_name(name: str, made: bool) -> bool:
    del made
    parts = name.split(".")
    return (
        all(parts)
        and not re.search("[*>\0 \t\r\n]", name)
        and len(name.encode()) <= 512
        and not name.startswith(("$SYS", "$JS"))
    )


def _is_legal_pattern(text: str) -> bool:
    if text.startswith("$queue."):
        _, group, *parts = text.split(".")
        if not group or not parts or set(group) & {"*", ">"}:
            return False
        text = ".".join(parts)
    return bool(text) and not re.search("[\0 \t\r\n]", text) and legal_dotted_pattern(text)


def _selects(pattern: str, name: str) -> bool:
    if pattern.startswith("$queue."):
        pattern = pattern.split(".", 2)[2]
    return dotted_selects(pattern, name)


ROW = System(
    "invented", ".", ">", _is_legal_name, _is_legal_pattern, _selects,
    forbidden="*>\0" + WHITE_SPACE, empty_levels=False,
)  # fmt: skip
OTHERS = tuple(SYSTEMS)


@pytest.fixture(scope="module", autouse=True)
def _invented() -> Iterator[None]:
    DIALECTS.register(INVENTED)
    SYSTEMS["invented"] = ROW
    yield
    del SYSTEMS["invented"]
    DIALECTS.unregister("invented")


def test_the_document_tables_describe_the_new_system() -> None:
    rows = dialect_tables.facts(["invented"], [])

    assert "| separator | `.` |" in rows
    assert (
        "| characters that no name contains | `*`, `>`, U+0020, U+0009, U+000D, U+000A, U+0000 |"
        in rows
    )


def test_a_name_is_registered_once() -> None:
    assert find_dialect("invented") is INVENTED
    with pytest.raises(GatewayError, match="invented: is already registered"):
        DIALECTS.register(INVENTED)


def test_a_separator_is_one_character() -> None:
    for dialect in DIALECTS.values():
        check(dialect)
    with pytest.raises(ValueError, match="the separator '::' is not one character"):
        check(replace(INVENTED, separator="::"))


@given(data=st.data())
def test_names_from_the_new_system_come_back(data: st.DataObject) -> None:
    check_round_trip("invented", OTHERS, data)


@pytest.mark.parametrize("source", OTHERS)
@given(data=st.data())
def test_names_to_the_new_system_come_back(source: str, data: st.DataObject) -> None:
    check_round_trip(source, ["invented"], data)


@given(data=st.data())
def test_subscriptions_of_the_new_system_are_covered(data: st.DataObject) -> None:
    check_covering("invented", OTHERS, data)


@pytest.mark.parametrize("source", OTHERS)
@given(data=st.data())
def test_the_new_system_covers_subscriptions(source: str, data: st.DataObject) -> None:
    check_covering(source, ["invented"], data)


@given(data=st.data())
def test_the_matcher_agrees_with_the_plain_rules(data: st.DataObject) -> None:
    pattern, name = data.draw(pairs("invented"))

    found = answer({"op": "match", "system": "invented", "pattern": pattern, "name": name})
    assert found == {"match": selects("invented", pattern, name)}


@given(st.lists(st.sampled_from(PIECES), max_size=5).map("".join))
def test_a_name_is_checked_by_the_rules_of_the_new_system(name: str) -> None:
    found = answer({"op": "check", "system": "invented", "name": name})

    assert found["valid"] is legal_name("invented", name)


@pytest.mark.parametrize("kind", ["name", "pattern"])
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a b", "white-space"),
        ("a.\0", "nul"),
        ("a..b", "empty-element"),
        ("a," * 300, "too-long"),
    ],
)
def test_a_forbidden_character_is_refused_by_its_own_rule(kind: str, text: str, rule: str) -> None:
    assert answer({"op": "check", "system": "invented", kind: text})["rule"] == rule


def test_facts_of_other_systems_do_not_apply() -> None:
    assert answer({"op": "check", "system": "invented", "name": "a,b.+#"}) == {"valid": True}
    assert answer({"op": "check", "system": "invented", "pattern": "$share/x.*"}) == {"valid": True}
    assert answer({"op": "check", "system": "invented", "pattern": "$queue.x"})["rule"] == (
        "shared-subscription"
    )
    assert answer(
        {"op": "match", "system": "invented", "pattern": "$queue.g.a.*", "name": "a.b"}
    ) == {"match": True}


def test_preflight_reports_names_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "names.txt"
    file.write_text("a/b\n" + "x" * 600 + "\n")

    assert main(["preflight", str(file), "--from", "mqtt", "--to", "invented"]) == 1
    assert "is 600 bytes, limit 512 (rule too-long)" in capsys.readouterr().out


CONFIG = """\
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: a}
  cloud: {kind: memory, dialect: invented, broker: b}
routes:
  there:
    from: {endpoint: plant, pattern: "plant/{site}/{rest...}"}
    to: {endpoint: cloud, template: "site.{site}.{rest...}"}
  back:
    from: {endpoint: cloud, pattern: "command.{rest...}"}
    to: {endpoint: plant, template: "command/{rest...}"}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG)
    return file


def test_the_proofs_know_the_new_system() -> None:
    assert findings(route("mqtt", "a/{x}/{r...}", ("invented", "A.{x}.{r...}"))) == []

    (joined,) = findings(route("invented", "a.{x}.{y}", ("mqtt", "A/{x}{y}")))
    (refused,) = findings(route("mqtt", "a/{x}", ("invented", "$SYS.{x}")))
    assert joined.rule == "not-injective"
    assert refused.severity == "error"


@pytest.mark.parametrize(("text", "kind"), [("command.start", "name"), ("command.>", "pattern")])
def test_the_page_finds_routes_of_the_new_system(config: Path, text: str, kind: str) -> None:
    found: Any = look_up(text, "invented", kind, load(config).routes)

    assert [taken["route"] for taken in found["routes"]] == ["back"]


def test_the_page_translates_to_the_new_system(config: Path) -> None:
    found: Any = look_up("plant/a/b", "mqtt", "name", load(config).routes)
    names = {each["system"]: each.get("names") for each in found["elsewhere"]}

    assert names.keys() == DIALECTS.keys() - {"mqtt"}
    assert names["invented"] == ("plant.a.b",)
