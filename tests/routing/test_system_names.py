"""A system's own names have one verdict: in `translate`, `explain`, `check`, `tail` and a run.

Only a route whose pattern names them takes them; nothing else translates them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.described_message import DescribedMessage
from gateway.check.result_copies import copies
from gateway.cli.mapping.name_requests import NEVER_BRIDGED, answer
from gateway.cli.mapping.route_answers import NOT_TAKEN, route_answers
from gateway.config.load import Configuration, load
from gateway.dialects.dialect import Dialect
from gateway.dialects.registry import DIALECTS
from gateway.model.message import Message
from gateway.proofs import prove
from gateway.routing.explain import explain
from gateway.routing.router import Router


def own_names(dialect: Dialect) -> list[str]:
    """Names of the system itself and of one client, and an ordinary name."""
    rules = dialect.prefix_rules
    starts = [each for rule in rules for each in (*rule.reserved, *rule.reply_only)]
    levels = [[first, "a"] for each in starts for first in (each, f"{each}X")]
    levels += [place for each in dialect.inbox_levels for place in ([each, "a"], ["a", each])]
    return [dialect.leading + dialect.separator.join(each) for each in (*levels, ("a", "b"))]


NAMES = [(system, name) for system, dialect in DIALECTS.items() for name in own_names(dialect)]


def target_of(system: str) -> str:
    return "smf" if system == "mqtt" else "mqtt"


def configured(folder: Path, system: str, pattern: str) -> Configuration:
    path = folder / "g.yaml"
    path.write_text(
        f"""
gateway: {{name: g}}
endpoints:
  from: {{kind: memory, dialect: {system}, broker: a}}
  to: {{kind: memory, dialect: {target_of(system)}, broker: b}}
routes:
  r:
    from: {{endpoint: from, pattern: {pattern!r}}}
    to: {{endpoint: to, template: "x"}}
""",
        encoding="utf-8",
    )
    return load(path)


def verdicts(configuration: Configuration, name: str) -> dict[str, bool]:
    """Whether each command, and a run, takes a name on the route."""
    (route,) = configuration.routes
    (result,) = explain(name, [route])
    (answered,) = route_answers(route, DescribedMessage(name), configuration)
    return {
        "explain": not result.why_not,
        "translate --route": answered.get("rule") != NOT_TAKEN,
        "tail": bool([*copies([route], Message(name, b""), configuration)]),
        "run": bool(Router(route.dialect, [route])[name]),
    }


@pytest.mark.parametrize(("system", "name"), NAMES)
def test_one_verdict(system: str, name: str, tmp_path: Path) -> None:
    dialect = DIALECTS[system]
    wide = configured(tmp_path, system, f"{dialect.leading}{{rest...}}")
    named = configured(tmp_path, system, name)
    translated = answer({"op": "translate", "from": system, "to": target_of(system), "name": name})
    stays = translated.get("rule") in NEVER_BRIDGED

    assert {*verdicts(wide, name).values()} == {not stays}
    assert {*verdicts(named, name).values()} == {True}
    assert ("system-names" in rules(named)) is stays
    assert "system-names" not in rules(wide)


@pytest.mark.parametrize(("system", "name"), NAMES)
def test_one_reason(system: str, name: str, tmp_path: Path) -> None:
    """Also of a route whose pattern has another first level."""
    translated = answer({"op": "translate", "from": system, "to": target_of(system), "name": name})
    _, _, reason = str(translated.get("refused", "")).partition(" at 0: ")
    if not reason:
        return
    leading = DIALECTS[system].leading
    for pattern in (f"{leading}{{rest...}}", f"{leading}z"):
        (result,) = explain(name, configured(tmp_path, system, pattern).routes)
        assert result.why_not == f"{reason}; name them in the pattern"


def rules(configuration: Configuration) -> set[str]:
    """The rules of what `check` finds."""
    return {each.rule for each in prove(configuration.routes, {"from": "a", "to": "b"})}
