"""Names that a system keeps for itself: routes, explanations and translators agree about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import SubjectError, TranslationError
from gateway.proofs.search.translated_name import TranslatedName, translate_name
from gateway.routing.explain import explain
from gateway.routing.name_rules import to_routes, to_rules
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.translate.names import Renderer, Translator
from tests.proofs.routes import findings, only, route

# source, pattern, a name that belongs to the system
BY_WILDCARD = [
    ("rv", "{r...}", "_RV.ERROR.SYSTEM"),
    ("rv", "{a}.{r...}", "_RV.INFO"),
    ("ems", "{r...}", "$sys.monitor.x"),
    ("smf", "{r...}", "#P2P/v:x/y"),
]
BY_NAME = [
    ("rv", "_RV.{r...}", "_RV.ERROR.SYSTEM"),
    ("ems", "$sys.monitor.{r...}", "$sys.monitor.x"),
    ("smf", "#P2P/{r...}", "#P2P/v:x/y"),
]


def outcomes(one: Route, name: str) -> list[str]:
    """The names or rules that the router, the explanation and the proofs have for a name."""
    levels = parse_subject(name, one.dialect).levels
    routed = [
        each.address or each.rule
        for match in Router(one.dialect, [one])[name]
        for each in match.deliveries
    ]
    explained = [made.name or made.rule for result in explain(name, [one]) for made in result.made]
    proved = translate_name(one, one.targets[0], levels)
    assert explained == routed
    assert routed == ([proved.target_name] if isinstance(proved, TranslatedName) else [])
    return routed


@pytest.mark.parametrize(("system", "pattern", "name"), BY_WILDCARD)
def test_a_wildcard_carries_no_name_of_the_system(system: str, pattern: str, name: str) -> None:
    with pytest.raises((SubjectError, TranslationError)):
        Translator(DIALECTS[system], Renderer(DIALECTS["ibm"])).name(name)

    assert outcomes(route(system, pattern, ("ibm", None)), name) == []


@pytest.mark.parametrize(("system", "pattern", "name"), BY_NAME)
def test_a_route_that_names_them_carries_them_and_says_so(
    system: str, pattern: str, name: str
) -> None:
    one = route(system, pattern, ("ibm", "from/{r...}"))

    found = only(findings(one), "system-names")

    assert len(outcomes(one, name)) == 1
    assert found.severity == "note"
    assert f"takes names that belong to {system} itself" in found.text


@pytest.mark.parametrize(("system", "name"), [(system, name) for system, _, name in BY_NAME])
def test_the_explanation_says_how_to_take_them(system: str, name: str) -> None:
    pattern = ">" if system == "rv" else name
    one = route(system, pattern, ("ibm", None))

    (result,) = explain(name, [one])

    assert bool(result.why_not) == (system == "rv")
    assert "name them in the pattern" in result.why_not or result.made


@pytest.mark.parametrize("system", DIALECTS)
def test_an_ordinary_pattern_has_no_note(system: str) -> None:
    dialect = DIALECTS[system]
    pattern = f"{dialect.leading}a{dialect.separator}{{x}}"

    found = findings(route(system, pattern, ("mqtt-2", "b/{x}")))
    assert "system-names" not in {each.rule for each in found}


@pytest.mark.parametrize(
    ("kind", "template", "name", "sent"),
    [
        ("nats, jetstream: false", "_INBOX.{rest...}", "re/a/b", ["_INBOX.a.b"]),
        ("nats, jetstream: false", "{rest...}", "re/%5FINBOX/b", ["reserved"]),
        ("solace", "#P2P/{rest...}", "re/v:a/b", ["#P2P/v:a/b"]),
        ("solace", "#P2P/{rest...}", "re/QUE/b", ["destination-kind"]),
        ("solace", "{rest...}", "re/%2523P2P/b", ["inbox"]),
    ],
)
def test_a_reply_reaches_an_inbox_that_the_template_names(
    tmp_path: Path, kind: str, template: str, name: str, sent: list[str]
) -> None:
    """A publisher who chooses the name does not reach one."""
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints: {{shop: {{kind: mqtt}}, bus: {{kind: {kind}}}}}\n"
        'routes: {r: {from: {endpoint: shop, pattern: "re/{rest...}"},'
        f' to: {{endpoint: bus, template: "{template}"}}}}}}\n'
    )
    (one,) = load(file).routes
    (as_archived,) = to_routes(to_rules([one]))

    for each in (one, as_archived):
        deliveries = [to for match in Router(each.dialect, [each])[name] for to in match.deliveries]
        assert [to.rule or to.address for to in deliveries] == sent
