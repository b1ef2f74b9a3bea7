"""The parser of mosquitto.conf reads what mosquitto itself reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.imports.imported_files import conf_files
from gateway.imports.mosquitto.config_file import MosquittoConfig, parse_config
from gateway.imports.mosquitto.importer import import_mosquitto
from gateway.imports.source_lines import read_mosquitto
from tests.imports.imported import QUIET, import_alone, omitted

BRIDGE = "connection c\naddress h\n"


def parsed(text: str) -> MosquittoConfig:
    return parse_config(read_mosquitto("m", text.encode()), lambda _: ())


OPTIONS = [  # measured with mosquitto 2.0.11: it starts with each of them
    pytest.param("cleansession 1", "cleansession", "true", id="truth-as-a-number"),
    pytest.param("try_private 0", "try_private", "false", id="falsehood-as-a-number"),
    pytest.param("notifications false # none", "notifications", "false", id="text-behind-a-truth"),
    pytest.param("keepalive_interval 60 s", "keepalive_interval", "60", id="text-behind-a-number"),
    pytest.param("remote_username a # b", "remote_username", "a # b", id="text-goes-to-the-end"),
    pytest.param('remote_clientid "x"', "remote_clientid", '"x"', id="quotes-are-text"),
    pytest.param("remote_clientid   x\t", "remote_clientid", "x", id="blanks-around"),
    pytest.param(
        "keepalive_interval 5\nkeepalive_interval 6", "keepalive_interval", "6", id="last-number"
    ),
    pytest.param("cleansession true\ncleansession false", "cleansession", "false", id="last-truth"),
]


@pytest.mark.parametrize(("lines", "name", "value"), OPTIONS)
def test_an_option_is_read_as_mosquitto_reads_it(lines: str, name: str, value: str) -> None:
    found = parsed(f"{BRIDGE}{lines}\ntopic a\n")

    assert found.connections[0].options[name].value == value
    assert found.omitted == ()


TOPICS = [
    pytest.param("topic a/# out # all", ("a/#", 0, "", ""), id="behind-the-direction"),
    pytest.param("topic a/# out 1 # all", ("a/#", 1, "", ""), id="behind-the-qos"),
    pytest.param("topic a/# out 1 x/ # all", ("a/#", 1, "x/", ""), id="behind-a-prefix"),
    pytest.param("topic a/# out 1 x/ y/ # all", ("a/#", 1, "x/", "y/"), id="at-the-end"),
    pytest.param("topic #", ("#", 0, "", ""), id="pattern"),
]


@pytest.mark.parametrize(("line", "expected"), TOPICS)
def test_a_topic_may_have_a_comment(line: str, expected: tuple[object, ...]) -> None:
    (topic,) = parsed(f"{BRIDGE}{line}\n").connections[0].topics

    assert (topic.pattern, topic.qos, topic.local, topic.remote) == expected


def test_an_address_may_have_a_comment() -> None:
    document = import_alone("m", b"connection c\naddress h:1884 # the hub\ntopic a\n")

    values = {each.key: each.value for each in document.endpoints[1].settings}
    assert (values["host"], values["port"]) == ("h", 1884)


REFUSED = [  # measured with mosquitto 2.0.11: it does not start with any of them
    pytest.param("topic a/# # all", "the direction '#' is none of", id="comment-as-direction"),
    pytest.param("topic\ta/#", "not a known option", id="tab"),
    pytest.param("  # x", "not a known option", id="indented-comment"),
    pytest.param("cleansession TRUE", "neither true nor false", id="upper-case"),
    pytest.param("remote_username a\nremote_username b", "it repeats line 4", id="repeated-text"),
]


@pytest.mark.parametrize(("lines", "reason"), REFUSED)
def test_a_line_that_mosquitto_refuses_is_listed(lines: str, reason: str) -> None:
    found = omitted(import_alone("m", f"{BRIDGE}topic z\n{lines}\n{QUIET}".encode()))

    assert len(found) == 1
    assert reason in found[0]


def test_the_files_of_a_folder_begin_without_a_connection(tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "a.conf").write_text(f"connection d\naddress h\ntopic a/# out\n{QUIET}")
    (folder / "b.conf").write_text("topic b/# out\n")
    text = f"{BRIDGE}{QUIET}include_dir {folder}\ntopic c/# out\n"

    document = import_mosquitto("m", text.encode(), conf_files)

    assert [(each.endpoint, each.pattern) for each in document.routes] == [
        ("c-local", "c/{rest...}"),
        ("d-local", "a/{rest...}"),
    ]
    assert [each.split(": ")[1] for each in omitted(document)] == ["option 'topic'"]


def test_the_files_of_a_folder_come_in_the_order_of_mosquitto(tmp_path: Path) -> None:
    for name in ("b.conf", "A.conf", "01.conf", "a.conf", "B.conf", "00.conf", ".conf", "c.txt"):
        (tmp_path / name).write_text("")

    names = [Path(name).name for name, _ in conf_files(str(tmp_path))]

    assert names == ["00.conf", "01.conf", "A.conf", "a.conf", "B.conf", "b.conf"]
