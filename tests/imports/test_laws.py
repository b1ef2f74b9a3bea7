"""Laws of the importers: every mapping passes the check, and any text is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.check.examine import examine
from gateway.errors import GatewayError
from gateway.imports import route_checks
from gateway.imports.document import Document, render
from gateway.imports.ems.importer import import_ems
from gateway.imports.source_lines import LineStatus
from tests.imports.imported import import_alone, loaded, omitted


def errors(document: Document, folder: Path) -> list[str]:
    """Return what `gateway check` refuses, and routes that read a state."""
    findings = examine(loaded(document, folder))
    return [str(each) for each in findings if each.severity == "error" or each.rule == "state-read"]


def warnings(document: Document, folder: Path) -> list[str]:
    findings = examine(loaded(document, folder))
    return [str(each) for each in findings if each.severity in {"error", "warning"}]


# mosquitto.conf(5), "Configuring Bridges": one of each way to write a topic.
BRIDGES = [
    pytest.param("topic #", id="pattern"),
    pytest.param("topic # both", id="all-both"),
    pytest.param("topic sensors/# out", id="out"),
    pytest.param("topic sensors/# in 2", id="in-with-qos"),
    pytest.param('topic # both 1 "" plants/7/', id="remote-prefix"),
    pytest.param('topic # both 1 line/ ""', id="local-prefix"),
    pytest.param("topic # both 2 line/ plants/7/", id="both-prefixes"),
    pytest.param("topic # out 0 line/ plants/7/\ntopic # in 0 line/ plants/7/", id="two-lines"),
    pytest.param("topic +/status both 0\ntopic cmd/+/set in 1\ntopic log/# out 2", id="several"),
    pytest.param('topic "" out 1 local/name remote/name', id="one-name-out"),
    pytest.param('topic "" both 1 local/name remote/name', id="one-name-both"),
    pytest.param("topic a/b/c both 1", id="one-name-as-it-is"),
    pytest.param("topic # out\ntopic cmd/# in", id="everything-out-commands-in"),
    pytest.param("topic a/# both\ntopic a/b/# out", id="inside-another"),
    pytest.param("topic a/# both\ntopic a/# both", id="twice"),
    pytest.param("topic /a/+/b/# both 1 /l/ /r/", id="empty-levels"),
]


@pytest.mark.parametrize("topics", BRIDGES)
@pytest.mark.parametrize("version", ["mqttv311", "mqttv50"])
def test_an_ordinary_bridge_passes_the_strict_check(
    tmp_path: Path, topics: str, version: str
) -> None:
    text = f"connection c\naddress h:1884\nbridge_protocol_version {version}\n{topics}\n"

    document = import_alone("m", text.encode())

    assert document.routes
    assert warnings(document, tmp_path) == []
    listed = ("MQTT 3.1.1", "the state of connection")
    told = [each for each in omitted(document) if not any(part in each for part in listed)]
    assert not told or "log/#" in topics or "mosquitto does not use it" in told[0]


# EMS User's Guide, "Destination Bridges" and tables 12, 35 and 43: one of each form and option.
GUIDE = [
    pytest.param("[topic:A.B]\nqueue=queue.B\ntopic=C.B\n", [], id="figure-11-and-12"),
    pytest.param(
        "[topic:A.B]\nqueue=queue.B\ntopic=C.B selector=\"urgency in('medium', 'high')\"\n",
        [],
        id="selector",
    ),
    pytest.param("[topic:myTopic1]\ntopic=myTopic2\nqueue=myQueue1\n", [], id="chapter-8"),
    pytest.param("[topic:foo.*] # mandatory\n queue = foo.queue\n", [], id="wildcard"),
    pytest.param("[ topic : foo.> ]\nqueue=foo.queue\n", [], id="blanks"),
    pytest.param("[queue:Q.1]\nqueue=QX.1\n", [1, 2], id="queue-source"),
    pytest.param("[topic:Q.1]\nqueue=QX.1\n[topic:Q.>]\nqueue=QX.1\n", [4], id="two-copies"),
    pytest.param("[topic:A.B]\ntopic=Q.B\n[topic:Q.B]\ntopic=B.C\n", [2], id="not-transitive"),
    pytest.param("[topic:A]\ntopic=B\n[topic:B]\ntopic=A\n", [], id="each-other"),
    pytest.param("[topic:>]\nqueue=all\n", [], id="everything"),
]


@pytest.mark.parametrize(("text", "told"), GUIDE)
def test_a_bridge_of_the_guide_passes_the_strict_check_or_is_listed(
    tmp_path: Path, text: str, told: list[int]
) -> None:
    document = import_ems([("bridges.conf", text.encode())])

    assert [each.location.line for each in document.omitted] == told
    if document.routes:
        assert warnings(document, tmp_path) == []


PROPERTIES = [
    "channel=mycast", "expiration=10min", "flowControl", "flowControl=1000KB", "global",
    "maxbytes=1MB", "maxmsgs=100", "overflowPolicy=discardOld", "prefetch=5", "secure",
    "sender_name", "sender_name_enforced", "store=$sys.failsafe", "trace=body",
]  # fmt: skip
TRANSPORTS = {
    "tibrv": ["service = 7780", "network = lan0", "daemon = tcp:host5:7885",
              "temp_destination_timeout = 30", "queue_import_dm = TIBEMS_PERSISTENT",
              "rv_queue_policy = TIBRVQUEUE_DISCARD_FIRST : 100 : 10", "export_headers = true"],
    "tibrvcm": ["rv_tport = RV02", "cm_name = RVCMTrans1", "ledger_file = ledgerFile.store",
                "sync_ledger = true", "request_old = true", "explicit_config_only = false",
                "default_ttl = 600", "export_properties = true"],
    "tibss": ["username = emsServer6", "password = myPasswd", "project = mfg_process_control",
              "server_names = tcp:rtHost2A:5555, ssl:rtHost2B:5571", "delivery_mode = gmd_some",
              "lb_mode = none", "override_lb_mode = enable", "gmd_file_delete = enable",
              "import_ss_headers = all", "preserve_gmd = always"],
}  # fmt: skip


@pytest.mark.parametrize("given_", PROPERTIES)
def test_every_property_of_a_topic_stays_with_the_server(given_: str) -> None:
    line = f'[jndi-a, jndi-b]business.inventory import="RV01,RV02",\n  export="RV01", {given_}\n'
    transports = b"[RV01]\ntype = tibrv\n[RV02]\ntype = tibrv\n"

    document = import_ems([("topics.conf", line.encode()), ("transports.conf", transports)])

    name = given_.partition("=")[0]
    assert {each.status for each in document.omitted} == {LineStatus.STAYS_AT_BROKER}
    assert any(f"property {name!r}" in each.item for each in document.omitted)
    assert "'business.inventory' from RV01 (tibrv), RV02 (tibrv)" in "\n".join(document.remarks)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_every_option_of_a_transport_stays_with_the_server(kind: str) -> None:
    text = "\n".join(["[T]", f"type = {kind}", *TRANSPORTS[kind]])

    document = import_ems([("transports.conf", text.encode())])

    names = [line.split(" =")[0] for line in TRANSPORTS[kind]]
    assert [each.location.line for each in document.omitted] == [
        at for at, _ in enumerate(names, 3)
    ]
    assert all(repr(name) in each.item for name, each in zip(names, document.omitted, strict=True))
    assert {each.status for each in document.omitted} == {LineStatus.STAYS_AT_BROKER}
    assert "myPasswd" not in render(document)


WORD = st.sampled_from(["a", "b", "c1", "x"])
EMS_NAME = st.lists(st.one_of(WORD, st.just("*")), min_size=1, max_size=3).map(".".join)
EMS_SOURCE = st.one_of(EMS_NAME, EMS_NAME.map("{}.>".format), st.just(">"))
SELECTOR = st.sampled_from(["", "", ' selector="x = 1"', " selector=\"k in ('a', 'b')\""])
SENT = st.builds(
    lambda kind, name, selector: f"{kind}={name}{selector}",
    st.sampled_from(["topic", "topic", "queue"]),
    st.one_of(st.lists(WORD, min_size=1, max_size=3).map(".".join), EMS_NAME),
    SELECTOR,
)
BRIDGE = st.builds(
    lambda kind, name, sent: "\n".join([f"[{kind}:{name}]", *sent]),
    st.sampled_from(["topic", "topic", "topic", "queue"]),
    EMS_SOURCE,
    st.lists(SENT, max_size=3),
)


@given(text=st.lists(BRIDGE, max_size=5).map("\n".join))
def test_every_import_of_ems_bridges_passes_the_check(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    document = import_ems([("bridges.conf", text.encode())])

    if document.live_routes:
        assert errors(document, tmp_path_factory.mktemp("ems")) == []


FILTER = st.one_of(
    st.lists(st.one_of(WORD, st.just("+"), st.just("")), min_size=1, max_size=3).map("/".join),
    st.lists(WORD, max_size=2).map(lambda words: "/".join([*words, "#"])),
    st.just('""'),
)
PREFIX = st.sampled_from(['""', "a/", "b/", "l/", "a/b/", "$SYS/", "x"])
TOPIC = st.builds(
    "topic {} {} {} {} {}".format,
    FILTER,
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from("012"),
    PREFIX,
    PREFIX,
)
OPTION = st.sampled_from(
    ["bridge_protocol_version mqttv50", "cleansession true", "remote_username u",
     "remote_password p", "local_username u", "bridge_cafile /ca.pem", "keepalive_interval 5",
     "restart_timeout 5 30", "notifications false", "try_private false", "start_type once",
     "bridge_max_packet_size 1000", "round_robin true", "bridge_insecure true",
     "notification_topic a/b", "notification_topic b", "notification_topic $SYS/a",
     "notifications_local_only true", "bridge_outgoing_retain false"]
)  # fmt: skip
CONNECTION = st.builds(
    lambda name, host, options, topics: "\n".join(
        [f"connection {name}", f"address {host}", *dict.fromkeys(options), *topics]
    ),
    st.sampled_from(["c", "d"]),
    st.sampled_from(["h", "h:1884", "localhost", "other"]),
    st.lists(OPTION, max_size=3),
    st.lists(TOPIC, min_size=1, max_size=4),
)


ALIKE = """connection {name}
address localhost
topic # in 0 "" ""
"""


@given(text=st.lists(CONNECTION, min_size=1, max_size=2).map("\n".join))
@example(text=ALIKE.format(name="c") + ALIKE.format(name="d"))
@example(text='connection c\naddress h\ntopic # out 0 "" $SYS/')
def test_every_import_of_mosquitto_bridges_passes_the_check(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    document = import_alone("m", text.encode())

    if document.live_routes:
        assert errors(document, tmp_path_factory.mktemp("mosquitto")) == []


FRAGMENT = st.one_of(
    st.sampled_from(
        ["[topic:a.>]", "[queue:q]", "topic=", "queue=b", ' selector="', "connection c",
         "address h", "topic ", "topic # both 1 ", "/", "#",
         "create bridge ", "source=topic:", " target=queue:", "delete bridge ", "<<EOF", "EOF",
         '"', "\\", ",", "import=", " {a} ", "${env:X}", "="]
    ),
    st.text(max_size=6),
)  # fmt: skip
ANY_TEXT = st.lists(st.one_of(FRAGMENT, st.just("\n")), max_size=25).map("".join)
ANY_BYTES = st.one_of(
    ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=60)
)


@given(name=st.sampled_from(["bridges.conf", "topics.conf", "transports.conf"]), data=ANY_BYTES)
def test_no_text_makes_the_import_of_ems_fail(name: str, data: bytes) -> None:
    assert render(import_ems([(name, data)])).startswith("# Made by")


@given(data=ANY_BYTES)
def test_a_file_of_unknown_name_is_read_or_refused(data: bytes) -> None:
    try:
        document = import_ems([("x", data)])
    except GatewayError as error:
        assert str(error).startswith("x:")  # noqa: PT017  # most of them are refused
    else:
        assert document.files == ("x",)


@given(data=ANY_BYTES)
def test_no_text_makes_the_import_of_mosquitto_fail(data: bytes) -> None:
    assert render(import_alone("m", data)).startswith("# Made by")


def test_routes_beyond_the_maximum_are_listed_as_unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_checks, "MAX_ROUTES", 1)

    found = omitted(import_ems([("bridges.conf", b"[topic:A]\ntopic=B\n[topic:C]\ntopic=D\n")]))

    (line,) = found
    assert line.startswith("bridges.conf:2: the routes together: not carried over")
    assert line.endswith("left out for more than 1 routes; run `gateway check`")
