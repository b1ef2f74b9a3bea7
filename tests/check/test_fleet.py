"""`gateway check A.yaml B.yaml ...`: what circles or arrives twice through several gateways."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gateway.cli import main
from tests.check.fleets import DOUBTED, LOCAL, OPEN, PROVEN, ROUTE, Check, broker, gateway, ring

FORWARD = (
    "a message comes back to its route: 'plant' at 'north:a' -> 'plant' at 'north:b' (route"
    " 'north:r') -> 'plant' at 'south:b' (route 'south:r') -> 'plant' at 'west:b' (route 'west:r')"
)
BACKWARD = (
    "a message comes back to its route: 'plant' at 'north:b' -> 'plant' at 'north:a' (route"
    " 'north:r.back') -> 'plant' at 'west:a' (route 'west:r.back') -> 'plant' at 'south:a' (route"
    " 'south:r.back')"
)
NO_END = "and so on without end; no gateway cuts it: the origin path does not cross from"
SECOND = (
    "but for the origin path: it is cut in its second round: the origin path does not cross from"
)
LATE = (
    "but for the origin path: it is cut when it has come back; write the same `broker_id` at all"
    " endpoints of each broker: then it is cut before"
)
UNKNOWN = "no `broker_id`, so it is not proven which other gateways are at this broker; write"
LOCALLY = "if that is this broker, else another one there"
HINT = (
    "exclude from one of these routes what the others send, or send it under a prefix"
    " that no route takes"
)
BOTH = "; the reverse route of `direction: both` has the same excludes"
CUT = "but for the origin path: it is cut before it comes back; nothing to do where both ways are"
TWICE = (
    f"{CUT} wanted; then a message arrives twice where both ways meet: two gateways read its first"
    " broker, and each gives it an id of its own"
)
ENDS = "full names of their hosts end this note"
RINGS = [
    pytest.param(
        ring("3.1.1", "3.1.1", "3.1.1"),
        1,
        [
            (
                f"north.yaml:6:57: error: "
                f"route 'north:r': {FORWARD}, {NO_END} 'north:b' to 'south:a'; {HINT}"
            ),
        ],
        "1 error",
        id="without-a-path",
    ),
    pytest.param(
        ring("3.1.1", "3.1.1", "3.1.1", both=True),
        1,
        [
            (
                f"north.yaml:6:57: error: "
                f"route 'north:r': {FORWARD}, {NO_END} 'north:b' to 'south:a';"
                f" {HINT}{BOTH}"
            ),
            (
                f"north.yaml:6:109: error: route 'north:r.back': {BACKWARD}, {NO_END} 'north:a' to"
                f" 'west:b'; {HINT}{BOTH}"
            ),
        ],
        "2 errors, 6 notes",
        id="without-a-path-both",
    ),
    pytest.param(
        ring("5", "5", "5"),
        0,
        [f"north.yaml:6:57: note: route 'north:r': {FORWARD}, {CUT} wanted"],
        "1 note",
        id="with-a-path",
    ),
    pytest.param(
        ring("5", "5", "5", both=True),
        0,
        [
            f"north.yaml:6:57: note: route 'north:r': {FORWARD}, {TWICE}",
            f"north.yaml:6:109: note: route 'north:r.back': {BACKWARD}, {TWICE}",
        ],
        "2 notes",
        id="with-a-path-both",
    ),
    pytest.param(
        ring("5", "5", "3.1.1 5"),
        0,
        [
            (
                f"north.yaml:6:57: warning: route 'north:r': {FORWARD}, {SECOND} 'west:b' to"
                f" 'north:a'; {HINT}"
            ),
        ],
        "1 warning",
        id="one-hop-without-a-path",
    ),
    pytest.param(
        ring("5", "5 3.1.1", "3.1.1"),
        1,
        [
            (
                f"north.yaml:6:57: error: "
                f"route 'north:r': {FORWARD}, {NO_END} 'south:b' to 'west:a'; {HINT}"
            ),
        ],
        "1 error",
        id="two-hops-without-a-path",
    ),
]


@pytest.mark.parametrize(("files", "status", "lines", "counts"), RINGS)
def test_a_ring_of_three_gateways(
    check: Check, files: dict[str, str], status: int, lines: list[str], counts: str
) -> None:
    found, shown = check(**files)

    assert found == status
    assert [each for each in shown if " comes back " in each] == lines
    assert shown[-1] == f"3 gateways: {counts}; all 6 endpoints have a `broker_id`"


IF = (
    "if 'north:b' and 'south:a' (two.example.com:1883), and 'south:b' and 'west:a'"
    " (three.example.com:1883), and 'west:b' and 'north:a' (one.example.com:1883) are one"
    " broker each: "
)


@pytest.mark.parametrize(
    ("version", "rest"),
    [
        (
            "3.1.1",
            f"route 'north:r': {IF}{FORWARD}, {NO_END} 'north:b' to 'south:a'; {HINT}",
        ),
        (
            "5",
            f"warning: route 'north:r': {IF}{FORWARD}, {LATE}",
        ),
    ],
)
def test_brokers_without_an_identity_are_joined_by_their_addresses(
    check: Check, version: str, rest: str
) -> None:
    status, lines = check(**ring(*[version] * 3, known=False))

    assert status == (version != "5")
    cycles = [each for each in lines if " comes back " in each]
    assert cycles == [
        f"north.yaml:6:57: {rest if rest.startswith('warning') else 'error: ' + rest}"
    ]
    assert (
        f"north.yaml:4:3: warning: endpoint 'b' (two.example.com:1883): {UNKNOWN}"
        " `broker_id: two.example.com:1883`, as at 'south:a' if they are one broker"
    ) in lines
    assert lines[-1].endswith(f"; 6 of 6 endpoints have no `broker_id`: {OPEN}")


def test_a_fleet_without_an_identity_is_no_success_when_warnings_are_errors(check: Check) -> None:
    files = {
        name: gateway(name, broker(f"{name}-a", known=False), broker("hub", known=False))
        for name in ("north", "south")
    }

    assert check(**files)[0] == 0
    assert check("--strict", **files)[0] == 1


def test_the_hub_of_two_sites_with_local_brokers(check: Check) -> None:
    """Two sites send to one hub; no local broker is joined with another one."""
    files = {
        name: gateway(name, LOCAL, "host: hub.example.com", f"{ROUTE}, direction: both}}")
        for name in ("north", "south")
    }

    status, lines = check(**files)

    assert status == 0
    assert lines == [
        (
            f"north.yaml:3:3: warning: endpoint 'a' (localhost:1883): {UNKNOWN}"
            " `broker_id: north/localhost:1883`; and the same at 'south:a'"
            f" (localhost:1883) {LOCALLY}"
        ),
        (
            f"north.yaml:4:3: warning: endpoint 'b' (hub.example.com:1883): {UNKNOWN}"
            " `broker_id: hub.example.com:1883`, as at 'south:b' if they are one broker"
        ),
        (
            f"south.yaml:3:3: warning: endpoint 'a' (localhost:1883): {UNKNOWN}"
            " `broker_id: north/localhost:1883` if this is the broker of 'north:a'"
            " (localhost:1883), else another one"
        ),
        (
            f"south.yaml:4:3: warning: endpoint 'b' (hub.example.com:1883): {UNKNOWN}"
            " `broker_id: hub.example.com:1883`, as at 'north:b' if they are one broker"
        ),
        "north.yaml: 2 warnings",
        "south.yaml: 2 warnings",
        f"2 gateways: 4 warnings; 4 of 4 endpoints have no `broker_id`: {OPEN}",
    ]


def test_a_hub_whose_brokers_are_known_is_proven(check: Check) -> None:
    hub = "host: hub.example.com, broker_id: hub"
    files = {
        name: gateway(
            name, f"host: {name}.example.com", hub, f"{ROUTE}, direction: both}}"
        ).replace("example.com", f"example.com, broker_id: {name}", 1)
        for name in ("north", "south")
    }

    assert check("--strict", **files) == (
        0,
        [
            "north.yaml: no findings",
            "south.yaml: no findings",
            f"2 gateways: no findings; {PROVEN}",
        ],
    )


def test_local_brokers_with_unlike_ids_may_be_one(check: Check) -> None:
    """Each name of the own machine is one address, and the last line says what it depends on."""
    both = f"{ROUTE}, direction: both}}"

    def texts(*ids: str) -> dict[str, str]:
        north, south, hub = ids
        at = "host: 127.0.0.1, port: 1900"
        return {
            "north": gateway("north", broker("one"), f"{at}{north}", both),
            "south": gateway("south", broker("two"), f"{at}{south}", both),
            "hub": gateway("hub", f"host: localhost, port: 1900{hub}", broker("three"), both),
        }

    _, lines = check(**texts("", "", ""))
    proposed = "`broker_id: north/127.0.0.1:1900`"
    other = f"{UNKNOWN} {proposed} if this is the broker of 'north:b' (127.0.0.1:1900)"
    assert lines[:3] == [
        (
            f"north.yaml:4:3: warning: endpoint 'b' (127.0.0.1:1900): {UNKNOWN} {proposed}; and the"
            f" same at 'south:b' (127.0.0.1:1900) or 'hub:a' (localhost:1900) {LOCALLY}"
        ),
        f"south.yaml:4:3: warning: endpoint 'b' (127.0.0.1:1900): {other}, else another one",
        f"hub.yaml:3:3: warning: endpoint 'a' (localhost:1900): {other}, else another one",
    ]

    _, lines = check(**texts(", broker_id: n", ", broker_id: s", ", broker_id: h"))
    assert lines == [
        (
            "south.yaml:4:59: note: 127.0.0.1:1900 is 's' here and 'n' at 'north:b' and 'h' at"
            " 'hub:a'; if these are one broker, write one `broker_id`: else a loop through it is"
            f" not seen; if they are several, {ENDS}"
        ),
        "north.yaml: no findings",
        "south.yaml: 1 note",
        "hub.yaml: no findings",
        f"3 gateways: 1 note; {DOUBTED}",
    ]

    status, lines = check("--strict", **texts(*[", broker_id: one-hub"] * 3))
    assert (status, lines[-1]) == (0, f"3 gateways: no findings; {PROVEN}")


def test_a_finding_that_needs_a_doubted_id_begins_with_its_condition(check: Check) -> None:
    def local(port: int) -> str:
        return f"host: localhost, port: {port}, broker_id: A"

    _, lines = check(
        east=gateway("east", local(1883), broker("two")),
        extra=gateway("extra", local(1884), broker("two")),
    )

    assert lines[:2] == [
        (
            "extra.yaml:3:59: warning: broker 'A' is localhost:1884 here and localhost:1883 at"
            " 'east:a': if these are two brokers, messages from one do not arrive at the other;"
            " give each broker its own `broker_id`; nothing to do when it is one broker"
        ),
        (
            "extra.yaml:6:57: error: route 'extra:r': if 'east:a' (localhost:1883) and 'extra:a'"
            " (localhost:1884) are one broker: a message to 'plant' reaches 'extra:b' twice as"
            " 'plant': by route 'east:r' and by route 'extra:r'; narrow one of the patterns, or"
            " exclude from one what the other takes"
        ),
    ]


def test_two_gateways_that_carry_one_message(check: Check) -> None:
    files = {name: gateway(name, broker("one"), broker("two")) for name in ("north", "south")}

    status, lines = check(**files)

    assert status == 1
    assert lines[0] == (
        "south.yaml:6:57: error: route 'south:r': a message to 'plant' reaches 'south:b' twice"
        " as 'plant': by route 'north:r' and by route 'south:r'; narrow one of the"
        " patterns, or exclude from one what the other takes"
    )
    assert lines[-1] == "2 gateways: 1 error; all 4 endpoints have a `broker_id`"


def test_members_of_one_share_divide_the_messages(check: Check) -> None:
    route = ROUTE.replace("plant/{r...}", "$share/g/plant/{r...}", 1)
    files = {
        name: gateway(name, broker("one"), broker("two"), f"{route}}}")
        for name in ("north", "south")
    }

    assert not [each for each in check(**files)[1] if " twice as " in each]


def test_a_cycle_through_one_gateway_that_only_another_file_shows(check: Check) -> None:
    """The file of `south` shows that both endpoints of `north` are at one broker."""
    north = gateway("north", "host: x.example.com", "host: y.example.com, broker_id: hub")
    south = gateway("south", "host: x.example.com, broker_id: hub", broker("two"))

    _, lines = check(north=north, south=south)

    assert (
        "north.yaml:6:57: warning: route 'north:r': if 'north:b' and 'north:a'"
        " (y.example.com:1883) are one broker: a message comes back to its route:"
        f" 'plant' at 'north:a' -> 'plant' at 'north:b' (route 'north:r'), {LATE}"
    ) in lines


def test_a_ring_of_many_gateways_with_names_that_change(check: Check) -> None:
    """Each gateway but the last takes one level off; the last one adds all of them again."""
    count = 15
    files = {}
    for at in range(count):
        start = "/".join("x" * (count - at))
        left, made = f"{start}/{{r...}}", f"{start[2:]}/{{r...}}".removeprefix("/")
        if at == count - 1:
            left, made = "x/{r...}", f"{'/'.join('x' * count)}/{{r...}}"
        route = (
            f'{{from: {{endpoint: a, pattern: "{left}"}}, to: {{endpoint: b, template: "{made}"}}}}'
        )
        names = f"b{at}", f"b{(at + 1) % count}"
        files[f"g{at}"] = gateway(
            f"g{at}", broker(names[0], "3.1.1"), broker(names[1], "3.1.1"), route
        )

    status, lines = check(**files)

    assert status == 1
    (cycle,) = [each for each in lines if " comes back " in each]
    assert cycle.count("->") == count
    assert "and so on without end; no gateway cuts it" in cycle


def test_an_imported_mesh_of_three_brokers(
    check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each broker has bridges to both others, as an import writes them, with a local one each."""
    texts = {}
    for own in range(3):
        bridges = "".join(
            f"connection to{other}\naddress 127.0.0.1:188{other}\n"
            "notifications false\ntopic # both 0\n"
            for other in range(3)
            if other != own
        )
        Path("mosquitto.conf").write_text(f"listener 188{own}\n{bridges}", encoding="utf-8")
        main(["import", "mosquitto", "mosquitto.conf", "-o", "import.yaml"])
        text = Path("import.yaml").read_text(encoding="utf-8")
        Path("import.yaml").unlink()
        texts[f"g{own}"] = re.sub(r"(?m)^gateway: \{name: .*\}", f"gateway: {{name: g{own}}}", text)
    capsys.readouterr()

    status, lines = check(**texts)

    assert status == 0
    text = (
        ": warning: endpoints 'to1-local' and 'to2-local' (localhost:1880):"
        f" {UNKNOWN} `broker_id: g0/localhost:1880`; and the same at 'g1:to0'"
        f" (127.0.0.1:1880) or 'g2:to0' (127.0.0.1:1880) {LOCALLY}"
    )
    assert any(each.startswith("g0.yaml:") and each.endswith(text) for each in lines)
    assert lines[-1] == (
        f"3 gateways: 9 warnings, 3 notes; 12 of 12 endpoints have no `broker_id`: {OPEN}"
    )

    known = {
        name: re.sub(r"# broker_id: .*:188(\d) .*\n", r"broker_id: broker-\1\n", text)
        for name, text in texts.items()
    }
    status, lines = check("--all", **known)

    assert status == 1
    assert len([each for each in lines if " twice as " in each]) == 6  # each way of each pair
    cycles = [each for each in lines if " comes back " in each]
    assert len(cycles) == 5  # three pairs, and the ring both ways
    assert all(": note: " in each for each in cycles)
    assert lines[-1] == "3 gateways: 6 errors, 8 notes; all 12 endpoints have a `broker_id`"


def test_findings_as_json_have_their_file_and_names_of_gateways(
    check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    del capsys
    _, lines = check("--format", "json", **ring("3.1.1", "3.1.1", "3.1.1"))

    (found,) = json.loads("\n".join(lines))
    assert (found["path"], found["line"], found["rule"]) == ("north.yaml", 6, "cycle")
    assert found["examples"][1] == {"name": "plant", "endpoint": "north:b", "system": "mqtt"}


def test_the_manual_shows_what_the_check_prints(check: Check) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")
    site = "host: hub.example.com"

    _, circle = check(**ring("3.1.1", "3.1.1", "3.1.1"))
    _, hub = check(north=gateway("north", LOCAL, site), south=gateway("south", LOCAL, site))

    assert f"```text\n{circle[0]}\n```" in manual
    assert f"```text\n{hub[-1]}\n```" in manual


def test_a_cycle_over_names_in_headers(check: Check) -> None:
    """The first gateway takes its names back to a broker from which the second one sends home."""
    lake = 'lake: {kind: kafka, servers: ["kafka.example.com:9092"], broker_id: lake}'
    north = f"""\
gateway: {{name: north}}
endpoints:
  a: {{kind: mqtt, {broker("one")}}}
  b: {{kind: mqtt, {broker("two")}}}
  {lake}
routes:
  out: {{from: {{endpoint: a, pattern: "plant/{{r...}}"}}, to: {{endpoint: lake, topic: p}}}}
  back: {{from: {{endpoint: lake, names_of: out}}, to: {{endpoint: b}}}}
"""
    south = gateway("south", broker("two"), broker("one"))
    _, lines = check(north=north, south=south)

    found = next(each for each in lines if "comes back to its route" in each)
    assert "(route 'north:out')" in found
    assert "(route 'north:back')" in found
    assert "(route 'south:r')" in found

    _, lines = check(north=north, south=south.replace('template: "plant/', 'template: "other/'))
    assert not [each for each in lines if "comes back to its route" in each]


def test_another_gateway_writes_what_the_first_one_takes_back(check: Check) -> None:
    """Its route has the same pattern and template, so that its headers are proven there."""
    lake = 'lake: {kind: kafka, servers: ["kafka.example.com:9092"], broker_id: lake}'
    source = 'from: {endpoint: a, pattern: "plant/{r...}"}'
    out = f"{{{source}, to: {{endpoint: lake, topic: p, lossy: true}}}}"
    texts = {
        name: f"""\
gateway: {{name: {name}}}
endpoints:
  a: {{kind: mqtt, {broker(first)}}}
  b: {{kind: mqtt, {broker("two")}}}
  {lake}
routes:
  out: {out}
"""
        for name, first in (("north", "one"), ("south", "two"))
    }
    texts["north"] += "  back: {from: {endpoint: lake, names_of: out}, to: {endpoint: b}}\n"
    _, lines = check(**texts)

    found = next(each for each in lines if "comes back to its route" in each)
    assert "(route 'south:out')" in found
    assert "(route 'north:back')" in found

    texts["south"] = texts["south"].replace("topic: p", "topic: q")
    assert not [each for each in check(**texts)[1] if "comes back to its route" in each]
