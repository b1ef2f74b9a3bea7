"""`gateway check A.yaml B.yaml ...`: names and addresses that several gateways share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.tables import ROOT
from tests.check.fleets import DOUBTED, LOCAL, PROVEN, Check, broker, gateway, ring

TWO_BROKERS = (
    "if these are two brokers, messages from one do not arrive at the other; give each broker its"
    " own `broker_id`; nothing to do when it is one broker"
)
NAMES = [
    pytest.param(
        {"north": gateway("hub", broker("one"), broker("two"))}
        | {"south": gateway("hub", broker("three"), broker("four"))},
        "south.yaml:1:17: error: gateway name 'hub' is also that of north.yaml; write"
        " `gateway: {name: ...}`, another one for each: paths and rows are told by it",
        id="gateway",
    ),
    pytest.param(
        {"north": gateway("north", broker("one") + ", client_id: x", broker("two"))}
        | {"south": gateway("south", broker("one") + ", client_id: x", broker("three"))},
        "south.yaml:3:83: error: "
        "`client_id` 'x' is also that of 'north:a': each ends the connection of"
        " the other; give each gateway a `client_id` of its own",
        id="client-id",
    ),
    pytest.param(
        {"north": gateway("n", broker("one", known=False) + ", client_id: x", broker("two"))}
        | {"south": gateway("s", broker("one", known=False) + ", client_id: x", broker("three"))},
        "south.yaml:3:67: error: "
        "if 'n:a' and 's:a' (one.example.com:1883) are one broker: `client_id` 'x'"
        " is also that of 'n:a': each ends the connection of the other; give each gateway a"
        " `client_id` of its own",
        id="client-id-of-an-address",
    ),
    pytest.param(
        {
            name: gateway(name, "host: h.example.com, broker_id: one", broker(f"{name}-b"))
            .replace(
                "kind: mqtt, host: h.example.com",
                "kind: rabbitmq, url: 'amqp://h.example.com/', queue: q",
            )
            .replace("plant/{r...}", "plant.{rest...}", 1)
            .replace("/{r...}", "/{rest...}")
            for name in ("north", "south")
        },
        "south.yaml:3:60: warning: `queue` 'q' is also that of 'north:a': each message reaches one"
        " of the two gateways only; give each gateway a `queue` of its own, unless they are to"
        " share the messages",
        id="queue",
    ),
    pytest.param(
        {
            name: gateway(name, "host: h.example.com, broker_id: one", broker(f"{name}-b")).replace(
                "kind: mqtt, host: h.example.com", "kind: solace, url: 'tcp://h.example.com'"
            )
            for name in ("north", "south")
        },
        "south.yaml:3:3: error: "
        "`queue` 'gateway/a/r' is also that of 'north:a': each message reaches one"
        " of the two gateways only; give each gateway a `queue` of its own, unless they are to"
        " share the messages",
        id="queue-by-default",
    ),
    pytest.param(
        {"north": gateway("north", "host: x.example.com, broker_id: p", broker("two"))}
        | {"south": gateway("south", "host: x.example.com, broker_id: q", broker("three"))},
        "south.yaml:3:51: warning: x.example.com:1883 is 'q' here and 'p' at 'north:a'; if these"
        " are one broker, write one `broker_id`: else a loop through it is not seen",
        id="one-address-of-two-brokers",
    ),
    pytest.param(
        {"north": gateway("north", f"{LOCAL}, broker_id: p", broker("two"))}
        | {"south": gateway("south", "host: x.example.com, broker_id: p", broker("three"))},
        "south.yaml:3:51: note: broker 'p' is x.example.com:1883 here and localhost:1883 at"
        f" 'north:a': {TWO_BROKERS}",
        id="one-broker-with-two-addresses",
    ),
    pytest.param(
        {"north": gateway("north", "host: y.example.com, broker_id: p", broker("two"))}
        | {"south": gateway("south", "host: x.example.com, broker_id: p", broker("three"))},
        "south.yaml:3:51: warning: broker 'p' is x.example.com:1883 here and y.example.com:1883 at"
        f" 'north:a': {TWO_BROKERS}",
        id="one-id-of-two-hosts",
    ),
    pytest.param(
        {name: gateway("plant", LOCAL, broker(name)) for name in ("north", "south")},
        "north.yaml:3:3: warning: endpoint 'a' (localhost:1883): no `broker_id`, so it is not"
        " proven which other gateways are at this broker; write `broker_id: SITE/localhost:1883`"
        " (SITE: a name of this site); and the same at 'south.yaml:a' (localhost:1883) if that is"
        " this broker, else another one there; but `broker_id: south` if this is the broker of"
        " 'south.yaml:b' (south.example.com:1883)",
        id="gateways-of-one-name",
    ),
    pytest.param(
        {"north": gateway("north", "host: 'x.example.com,y.example.com'", broker("two"))}
        | {"south": gateway("south", "host: Y.example.com, broker_id: p", broker("three"))},
        "north.yaml:3:3: warning: endpoint 'a' (x.example.com:1883, y.example.com:1883): no"
        " `broker_id`, so it is not proven which other gateways are at this broker; write"
        " `broker_id: p`, as at 'south:a' if they are one broker",
        id="one-of-several-addresses",
    ),
    pytest.param(
        {"north": gateway("north", "host: x.example.com", broker("two"))}
        | {"south": gateway("south", "host: x.example.com, port: 1884", broker("three"))},
        "north.yaml:3:3: warning: endpoint 'a' (x.example.com:1883): no `broker_id`, so it is not"
        " proven which other gateways are at this broker; write `broker_id: x.example.com:1883`;"
        " and the same at 'south:a' (x.example.com:1884) if that is this broker, else another one"
        " there",
        id="one-host-with-two-ports",
    ),
]


@pytest.mark.parametrize(("files", "line"), NAMES)
def test_names_and_addresses_that_two_gateways_share(
    check: Check, files: dict[str, str], line: str
) -> None:
    assert line in check(**files)[1]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_one_id_at_one_address_is_no_finding(check: Check, host: str) -> None:
    texts = {
        "north": gateway("north", f"{LOCAL}, broker_id: p", broker("two")),
        "south": gateway("south", f"host: {host}, broker_id: p", broker("three")),
    }

    assert check(**texts)[1][-1] == f"2 gateways: no findings; {PROVEN}"


@pytest.mark.parametrize(
    ("hosts", "severity"),
    [
        (("localhost", "localhost"), "note"),
        (("127.0.0.1", "localhost"), "note"),
        (("broker", "broker"), "note"),
        (("'broker,x.example.com'", "broker"), "note"),
        (("'broker,x.example.com'", "x.example.com"), "warning"),
        (("'broker,x.example.com'", "'broker,x.example.com'"), "warning"),
        (("x.example.com", "x.example.com"), "warning"),
        (("10.0.0.7", "10.0.0.7"), "warning"),
    ],
)
def test_unlike_ids_at_one_address_are_a_warning_unless_it_is_local(
    check: Check, hosts: tuple[str, str], severity: str
) -> None:
    north, south = hosts
    texts = {
        "north": gateway("north", f"host: {north}, broker_id: p", broker("two")),
        "south": gateway("south", f"host: {south}, broker_id: q", broker("three")),
    }

    _, lines = check(**texts)

    (line,) = [each for each in lines if " is 'q' here and 'p' at 'north:a'; " in each]
    assert f": {severity}: " in line
    assert lines[-1].endswith(f"; {DOUBTED}")


ACCOUNTS = """\
gateway: {name: hub}
endpoints:
  a: {kind: nats, url: "nats://nats.example.com", credentials_file: a.creds, broker_id: acc-a}
  b: {kind: nats, url: "nats://nats.example.com", credentials_file: b.creds, broker_id: acc-b}
routes:
  r:
    from: {endpoint: a, pattern: "plant.{r...}"}
    to: {endpoint: b, template: "plant.{r...}"}
    direction: both
"""


def test_two_accounts_of_one_server_with_ids_of_their_own_are_two_brokers(check: Check) -> None:
    south = (
        gateway("south", 'url: "nats://nats.example.com", broker_id: acc-b', broker("two"))
        .replace("kind: mqtt, url", "kind: nats, url")
        .replace("plant/{r...}", "plant.{r...}", 1)
    )

    assert check("--without-secrets", "--strict", hub=ACCOUNTS)[0] == 0

    status, lines = check("--without-secrets", hub=ACCOUNTS, south=south)

    found = "nats.example.com:4222 is 'acc-b' here and 'acc-a' at 'hub:a'"
    assert status == 0
    assert not [each for each in lines if " comes back " in each or " twice as " in each]
    assert any(each.startswith("hub.yaml:4:") and f" warning: {found};" in each for each in lines)
    assert lines[-1].endswith(f"; {DOUBTED}")


def test_the_example_of_the_documentation_passes_strictly(check: Check) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n# (\w+)\.yaml\n(.*?)```", page, re.DOTALL)

    status, lines = check("--without-secrets", "--strict", **dict(examples))

    assert (status, [name for name, _ in examples]) == (0, ["north", "south"])
    assert "localhost:1883 is 'plant-south' here and 'plant-north' at 'north:plant'" in lines[0]
    assert lines[-1].endswith(f"; {DOUBTED}")


def test_the_instances_of_a_pair_are_one_gateway(check: Check) -> None:
    def instance(name: str) -> str:
        text = gateway("plant", broker("one"), broker("two"))
        given = f"name: plant, instance: {name}}}\nstandby: {{lease: {{kind: file, path: lease}}}}"
        return text.replace("name: plant}", given, 1)

    _, lines = check(north=instance("north"), south=instance("south"))

    assert lines[-3:] == [
        "north.yaml: no findings",
        "south.yaml: no findings",
        f"2 gateways: no findings; {PROVEN}",
    ]


def test_brokers_in_the_process_are_known_and_never_joined(check: Check) -> None:
    files = {
        name: gateway(name, "dialect: mqtt", "dialect: ems, broker: other")
        .replace("kind: mqtt", "kind: memory")
        .replace('template: "plant/', 'template: "plant.')
        for name in ("north", "south")
    }

    assert check(**files)[1][-1].endswith(f"; {PROVEN}")


def test_a_file_with_errors_is_named_and_the_others_are_proven_without_it(check: Check) -> None:
    files = ring("3.1.1", "3.1.1", "3.1.1") | {"broken": "routes: {}\n"}

    status, lines = check(**files)

    assert status == 1
    assert any(each.startswith("broken.yaml:1:") for each in lines)
    assert any(" comes back " in each for each in lines)
    assert lines[-1].endswith(
        "; nothing is proven with broken.yaml before the errors there are mended"
    )


def test_values_that_are_not_known_without_secrets_join_nothing(check: Check) -> None:
    """Two references with one name may have two values, and a `broker_id` may be one."""
    texts = {
        "north": gateway(
            "north", 'host: "${env:HUB}.example.com"', 'host: x.example.com, broker_id: "${env:ID}"'
        ),
        "south": gateway(
            "south", 'host: "${env:HUB}.example.com", client_id: "${env:ID}"', broker("two")
        ),
    }

    status, lines = check("--without-secrets", **texts)

    assert status == 0
    assert not [each for each in lines if "client_id" in each or " twice as " in each]
    assert lines[-1].endswith(
        "; 3 of 4 endpoints have no `broker_id`: cycles and doubles through their brokers are not"
        " excluded"
    )


def test_values_of_references_are_in_no_finding(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB", "hidden-host.example.com")
    host = 'host: "${env:HUB}"'

    _, lines = check(
        north=gateway("north", broker("one"), host), south=gateway("south", host, broker("two"))
    )

    assert "hidden-host" not in "\n".join(lines)
    assert any("as at 'south:a' if they are one broker" in each for each in lines)


def test_a_folder_is_one_gateway(check: Check, tmp_path: Path) -> None:
    folder = tmp_path / "north"
    folder.mkdir()
    text = gateway("north", broker("one"), broker("two"))
    head, _, routes = text.partition("routes:")
    (folder / "endpoints.yaml").write_text(head)
    (folder / "routes.yaml").write_text(f"routes:{routes}")

    _, lines = check("north", south=gateway("south", broker("one"), broker("two")))

    assert any("by route 'north:r' and by route 'south:r'" in each for each in lines)
    assert "north: no findings" in lines
