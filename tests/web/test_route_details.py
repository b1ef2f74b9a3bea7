"""The details of a route as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.routing.route import Route
from gateway.runtime.record.recent_names import WATCH_SECONDS, SeenCopy, SeenMessage
from gateway.web.application import WebApplication
from gateway.web.exchange import HttpRequest
from tests.web.status_samples import (
    LOCAL,
    START,
    FakeStatus,
    endpoint,
    refusal,
    route,
    status,
)
from tests.web.test_lookup import CONFIG


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Route]:
    file: Path = tmp_path_factory.mktemp("details") / "gateway.yaml"
    file.write_text(CONFIG)
    return load(file).routes


def details(name: str, shown: FakeStatus) -> Any:  # noqa: ANN401  # JSON
    return answer("/api/route", f"name={name}", shown)


def names(route: str, shown: FakeStatus) -> Any:  # noqa: ANN401  # JSON
    return answer("/api/tail", f"route={route}", shown)


def answer(path: str, query: str, shown: FakeStatus) -> Any:  # noqa: ANN401  # JSON
    request = HttpRequest("GET", path, query, LOCAL)
    return json.loads(WebApplication(shown, mutual_tls=False).answer(request).body)


def test_a_route_has_its_names_flows_and_refusals(routes: Sequence[Route]) -> None:
    real = routes[0]
    target = real.targets[0]
    away = endpoint(
        target.endpoint, "sink", connection="lost", reason="gone", retry_in=2.54, spooled_messages=7
    )
    shown = FakeStatus(
        status(
            endpoints=(endpoint(real.endpoint), away),
            routes=(
                route(
                    real.name,
                    source=f"{real.endpoint} {real.source.text}",
                    targets=(target.label,),
                    lag=3.0,
                    refusals=(refusal("first"), refusal("second", START + 1)),
                ),
            ),
        ),
        routes,
    )

    found = details(real.name, shown)

    assert found["guarantee"] == "at_least_once"
    (flow,) = found["flows"]
    assert (flow["state"], flow["retry_in"]) == ("spooling", {target.endpoint: 2.5})
    assert found["patterns"][0]["pattern"] == real.source.text
    assert target.template is not None
    assert found["patterns"][0]["targets"][0]["templates"] == [target.template.text]
    assert [each["name"] for each in found["refusals"]] == ["second", "first"]


def test_an_unknown_route_is_an_error() -> None:
    shown = FakeStatus(status())

    assert details("nothing", shown) == names("nothing", shown) == {"error": "no such route"}
    for path in ("/api/route", "/api/tail"):
        request = HttpRequest("GET", path, headers=LOCAL)
        assert WebApplication(shown, mutual_tls=False).answer(request).status == 400


def test_the_names_that_pass_have_the_copies_of_each_target(routes: Sequence[Route]) -> None:
    copies = (SeenCopy("far", "b/1", "", ""), SeenCopy("other", "", "too-long", "900 bytes"))
    name = routes[0].name
    shown = FakeStatus(status(routes=(route(name),)), routes)
    shown.seen = {name: [SeenMessage(START, "near", "a/1", copies, 3)]}

    found = names(name, shown)

    assert found["seconds"] == WATCH_SECONDS
    (seen,) = found["messages"]
    assert (seen["time"], seen["endpoint"], seen["name"], seen["more"]) == (START, "near", "a/1", 3)
    assert [each["name"] or each["rule"] for each in seen["copies"]] == ["b/1", "too-long"]


def test_texts_are_redacted_and_values_of_references_hidden(routes: Sequence[Route]) -> None:
    class Guarded(FakeStatus):
        def hide(self, text: str) -> str:
            return text.replace("line", "${env:NAME}")

        def redact(self, text: str) -> str:
            return text.replace("hunter22", "***")

    leaking = refusal("hunter22", reason="hunter22")
    name = routes[0].name
    shown = Guarded(status(routes=(route(name, refusals=(leaking,)),)), routes)
    copy = SeenCopy("far", "hunter22", "", "hunter22")
    shown.seen = {name: [SeenMessage(START, "near", "hunter22", (copy,))]}

    found = json.dumps([details(name, shown), names(name, shown)])

    assert "hunter22" not in found
    assert "${env:NAME}" in found
