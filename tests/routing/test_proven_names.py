"""Names that a message carries count where they are proven: in rules, explanations, and time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from gateway.model.message import Headers, Message
from gateway.routing.explain import explain
from gateway.routing.name_rules import NOT_RECORDED, RouteNames, to_routes, to_rules
from gateway.routing.router import Router
from gateway.translate.shorten import ShortNamesInMemory
from tests.config.test_names_of import BACK, ENDPOINTS, NAME, OUT, configuration
from tests.runtime.received_batches import received_batch

RECORDED = json.dumps({"property.gateway_name": NAME})


def test_the_rules_of_an_archive_make_the_same_names(tmp_path: Path) -> None:
    routes = configuration(tmp_path, OUT + BACK).routes
    back = routes[1]
    message = Message("plant:7", b"", Headers(properties={"gateway_name": NAME}))
    ((delivery,),) = (each.deliveries for each in Router(back.dialect, [back]).match(message))
    names = RouteNames(to_routes(json.loads(json.dumps(to_rules(routes)))), ShortNamesInMemory())

    assert delivery.fields == RECORDED
    assert names.names("back", "plant2", "plant:7", RECORDED) == ["back/7/motor/temp.max"]
    assert names.names("back", "plant2", "plant:8", RECORDED) == ["(not taken)"]
    assert names.names("back", "plant2", "plant:7") == [NOT_RECORDED]


def test_a_name_alone_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    _, back = configuration(tmp_path, OUT + BACK).routes
    ((delivery,),) = (each.deliveries for each in Router(back.dialect, [back])["plant:7"])

    assert str(delivery.rule) == "field"
    assert "what route 'out' wrote" in delivery.reason


def test_an_explanation_leads_to_the_target_and_back(tmp_path: Path) -> None:
    routes = configuration(tmp_path, OUT + BACK).routes
    out, back = explain(NAME, routes, None)

    (made,) = out.made
    assert made.name == "plant:7"
    assert [(each.route, each.name) for each in made.back] == [("back", "back/7/motor/temp.max")]
    assert "kafka has no such name" in back.why_not


def test_an_explanation_of_a_copy_needs_its_header(tmp_path: Path) -> None:
    routes = configuration(tmp_path, OUT + BACK).routes
    (alone,) = explain("plant:7", routes, "lake")
    message = Message("plant:7", b"", Headers(properties={"gateway_name": NAME}))
    (whole,) = explain("plant:7", routes, "lake", lambda _: message)

    assert "what route 'out' wrote" in alone.why_not
    assert "gateway_name" in alone.why_not
    assert whole.captures == (("line", "7"), ("rest", "motor/temp.max"))
    assert [each.name for each in whole.made] == ["back/7/motor/temp.max"]


def test_a_proof_translates_no_copy_of_a_route_beside_it_again(tmp_path: Path) -> None:
    beside = """\
  beside:
    from: {endpoint: lake, topic: plant, key: "{line}"}
    to: {endpoint: plant2, template: "beside/{line}"}
"""
    routes = configuration(tmp_path, OUT + BACK + beside).routes[1:]
    router = Router(routes[0].dialect, routes)
    message = Message("plant:7", b"", Headers(properties={"gateway_name": NAME}))
    alone, proven = router["plant:7"], router.match(message)

    addresses = [[copy.address for copy in each.deliveries] for each in proven]
    assert addresses == [["back/7/motor/temp.max"], ["beside/7"]]
    assert [one is other for one, other in zip(alone, proven, strict=True)] == [False, True]


def test_a_refused_copy_has_the_proven_name_for_its_row(tmp_path: Path) -> None:
    """The name at Kafka is topic and key, by which nobody knows the message."""
    limited = ENDPOINTS.replace("port: 1884}", "port: 1884, limits: {levels: 3}}")
    back = configuration(tmp_path, OUT + BACK, limited).routes[1]
    message = Message("plant:7", b"", Headers(properties={"gateway_name": NAME}))
    (match,) = Router(back.dialect, [back]).match(message)
    record = received_batch([message])
    letter = record.refused(0, match.deliveries[0], 5)

    assert match.deliveries[0].fields == letter.fields == RECORDED
    assert letter.source_name == "plant:7"
    assert letter.reason.endswith(f"; its proven name is {NAME!r}")
    (row,) = record.rows
    assert row.common["fields"] == RECORDED
    assert row.common["reason"] == letter.reason
    redacted = replace(back, archive_redact=("gateway_*",))
    ((hidden,),) = (each.deliveries for each in Router(back.dialect, [redacted]).match(message))
    assert record.refused(0, hidden, 5).reason == str(hidden.reason)
