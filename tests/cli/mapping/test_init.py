"""`gateway init`: what it writes passes `gateway check`, and runs."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import yaml

from gateway.cli import main
from gateway.cli.mapping.init_text import SCHEMA_FILE
from gateway.config.load import load
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import find_dialect
from gateway.endpoints.registry import starters

PAIRS = list(product(starters(), repeat=2))


def init(folder: Path, *arguments: str) -> int:
    return main(["init", str(folder / "gateway.yaml"), *arguments])


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=map("-".join, PAIRS))
def test_every_pair_passes_the_strict_check(
    tmp_path: Path, source: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tmp_path, "--from", source, "--to", target, "--names", "orders") == 0
    file = str(tmp_path / "gateway.yaml")

    assert main(["check", "--strict", "--without-secrets", file]) == 0, capsys.readouterr()
    assert main(["test", "--without-secrets", file]) == 0, capsys.readouterr()


def test_a_pattern_keeps_its_captures(tmp_path: Path) -> None:
    names = "floor.{line}.{machine...}"

    assert init(tmp_path, "--from", "yami4", "--to", "mqtt", "--names", names) == 0

    (route,) = yaml.safe_load((tmp_path / "gateway.yaml").read_text())["routes"].values()
    assert route["from"]["pattern"] == names
    assert route["to"]["template"] == "floor/{line}/{machine...}"
    assert main(["test", str(tmp_path / "gateway.yaml")]) == 0


BELOW_AND_ITSELF = {
    "mqtt",
    "ibm",
    "rabbitmq",
    "amqp",
    "kafka",
}  # their pattern for all below a level also has it


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=map("-".join, PAIRS))
def test_a_list_of_names_makes_a_route_for_each_first_level(
    tmp_path: Path, source: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    separator = find_dialect(starters()[source][1].dialect).separator
    names = "orders/eu/1\norders/us/2\n\nalarms/line4\nalarms\nal-arms/x\nal_arms/x\n"
    if source == "kafka":  # a route for each topic
        names = names.replace("s/", "s:")
    (tmp_path / "names.txt").write_text(names.replace("/", separator))
    listed = ("--list", str(tmp_path / "names.txt"))
    assert init(tmp_path, "--from", source, "--to", target, *listed) == 0, capsys.readouterr()
    file = tmp_path / "gateway.yaml"

    routes = yaml.safe_load(file.read_text())["routes"]
    alone = [] if source in BELOW_AND_ITSELF else ["alarms-2"]
    assert [*routes] == ["orders", "alarms", *alone, "al-arms", "al-arms-2"]
    assert main(["check", "--strict", "--without-secrets", str(file)]) == 0, capsys.readouterr()
    assert main(["test", "--without-secrets", str(file)]) == 0, capsys.readouterr()


@pytest.mark.parametrize(
    ("source", "target", "names", "template"),
    [
        pytest.param("mqtt", "kafka", "a/{x}/{y...}", "a.{x}:{y...}", id="rest"),
        pytest.param("mqtt", "kafka", "a/{x}/pv", "a:{x}.pv", id="last-capture"),
        pytest.param("mqtt", "kafka", "{x}/pv", "{x}:pv", id="first-level"),
        pytest.param("mqtt", "kafka", "{x}", "{x}", id="no-key"),
        pytest.param("kafka", "mqtt", "a.{x}:{y...}", "a/{x}/{y...}", id="from"),
        pytest.param("kafka", "mqtt", "a.b", "a/b/{rest...}", id="topic"),
    ],
)
def test_a_name_has_its_key_behind_the_topic(
    tmp_path: Path, source: str, target: str, names: str, template: str
) -> None:
    assert init(tmp_path, "--from", source, "--to", target, "--names", names) == 0

    (route,) = yaml.safe_load((tmp_path / "gateway.yaml").read_text())["routes"].values()
    assert route["to"]["template"] == template
    assert main(["check", "--strict", str(tmp_path / "gateway.yaml")]) == 0
    assert main(["test", str(tmp_path / "gateway.yaml")]) == 0


def test_a_stream_has_the_names_of_the_template(tmp_path: Path) -> None:
    assert init(tmp_path, "--from", "kafka", "--to", "nats", "--names", "orders") == 0

    target = yaml.safe_load((tmp_path / "gateway.yaml").read_text())["endpoints"]["target"]
    assert target["subjects"] == ["orders", "orders.>"]


def test_a_level_of_a_list_is_spelled_as_the_target_has_it(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("v1.2/x\n")
    listed = ("--list", str(tmp_path / "names.txt"))

    assert init(tmp_path, "--from", "mqtt", "--to", "nats", *listed) == 0

    (route,) = yaml.safe_load((tmp_path / "gateway.yaml").read_text())["routes"].values()
    assert route["to"]["template"] == "v1%2E2.{rest...}"
    assert main(["check", "--strict", str(tmp_path / "gateway.yaml")]) == 0


WRONG_LISTS = [
    pytest.param(b"", ": has no name; write one per line", id="empty"),
    pytest.param(b"a\nb/+\n", ":2: mqtt: 'b/+' at", id="wildcard"),
    pytest.param(b"a{b}\n", ":1: 'a{b}': a pattern cannot have braces", id="braces"),
    pytest.param(b"\xff\n", ": the names are not in UTF-8", id="bytes"),
    pytest.param(
        b"".join(b"%d/x\n" % n for n in range(101)), ":101: more than 100 first levels", id="many"
    ),
]


@pytest.mark.parametrize(("names", "text"), WRONG_LISTS)
def test_a_wrong_list_writes_nothing(
    tmp_path: Path, names: bytes, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes(names)

    assert init(tmp_path, "--from", "mqtt", "--to", "nats", "--list", str(file)) == 2

    assert f"{file}{text}" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [file]


def test_the_first_line_names_the_schema_that_lies_beside_it(tmp_path: Path) -> None:
    init(tmp_path, "--from", "mqtt", "--to", "mqtt", "--names", "a")

    first = (tmp_path / "gateway.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=gateway.schema.json"
    assert "routes" in yaml.safe_load((tmp_path / "gateway.schema.json").read_text())["properties"]


def test_an_existing_schema_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "gateway.schema.json"
    schema.write_text("mine")

    assert init(tmp_path, "--from", "mqtt", "--to", "mqtt", "--names", "a") == 0

    assert schema.read_text() == "mine"
    assert f"{schema}: kept; `gateway schema` prints the present one" in capsys.readouterr().out
    (tmp_path / "gateway.yaml").unlink()
    schema.unlink()
    init(tmp_path, "--from", "mqtt", "--to", "mqtt", "--names", "a")
    (tmp_path / "gateway.yaml").unlink()
    init(tmp_path, "--from", "mqtt", "--to", "mqtt", "--names", "a")
    assert "kept" not in capsys.readouterr().out  # the same text


def test_a_mapping_is_no_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.schema.json"

    assert main(["init", str(file), "--from", "mqtt", "--to", "mqtt", "--names", "a"]) == 2

    assert "is the name of the schema; write another file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("blocks", "file"),
    [pytest.param(1, "gateway.yaml", id="mapping"), pytest.param(16, SCHEMA_FILE, id="schema")],
)
def test_a_full_disk_leaves_the_folder_as_it_was(tmp_path: Path, blocks: int, file: str) -> None:
    kept = tmp_path / "notes"
    kept.touch()
    words = [sys.executable, "-B", "-m", "gateway", "init", "--from", "mqtt", "--to", "mqtt"]
    shell = f"ulimit -f {blocks}; {shlex.join(words)} --names a"

    done = subprocess.run(  # noqa: S603  # the words above
        ["/bin/sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr.endswith(f"{file}: cannot write the file: File too large\n")
    assert list(tmp_path.iterdir()) == [kept]


ADDRESSES = [
    pytest.param("mqtt", "[::1]:1884", "host", "::1", id="mqtt-6"),
    pytest.param("mqtt", "null:1884", "host", "null", id="a-word-of-yaml"),
    pytest.param("mqtt", "10.0.0.1:1884", "port", 1884, id="port"),
    pytest.param("solace", "[::1]:1884", "url", "tcp://[::1]:1884", id="solace-6"),
    pytest.param("ems", "[::1]:1884", "urls", ["tcp://[::1]:1884"], id="ems-6"),
    pytest.param("ibm", "[::1]:1884", "properties", ["hostName=::1", "port=1884",
        "queueManager=QM1", "channel=GATEWAY.SVRCONN", "transportType=1"], id="ibm-6"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "address", "key", "value"), ADDRESSES)
def test_an_address_is_written_as_yaml_reads_it(
    tmp_path: Path, system: str, address: str, key: str, value: object
) -> None:
    to = ("--to", system, "--to-address", address)
    assert init(tmp_path, "--from", "mqtt", *to, "--names", "a") == 0

    written = yaml.safe_load((tmp_path / "gateway.yaml").read_text())
    assert written["endpoints"]["target"][key] == value


@pytest.mark.parametrize("given", ["", "/opt/ems.jar"])
def test_the_last_line_names_the_variables_to_set(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("EMS_CLASSPATH", raising=False)
    if given:
        monkeypatch.setenv("EMS_CLASSPATH", given)

    init(tmp_path, "--from", "ems", "--to", "mqtt", "--names", "a")

    file = tmp_path / "gateway.yaml"
    before = "" if given else "set EMS_CLASSPATH, then "
    assert capsys.readouterr().out == f"{file}: written; next: {before}gateway check {file}\n"


@pytest.mark.parametrize(
    ("system", "template"),
    [
        ("nats", "v1%2E2.{rest...}"), ("ems", "v1%2E2.{rest...}"), ("rabbitmq", "v1%2E2.{rest...}"),
        ("amqp", "v1%2E2.{rest...}"), ("yami4", "v1%2E2.{rest...}"), ("solace", "v1.2/{rest...}"),
    ],
)  # fmt: skip
def test_a_level_stays_one_level_at_the_target(tmp_path: Path, system: str, template: str) -> None:
    assert init(tmp_path, "--from", "mqtt", "--to", system, "--names", "v1.2") == 0

    (route,) = yaml.safe_load((tmp_path / "gateway.yaml").read_text())["routes"].values()
    assert route["to"]["template"] == template


def test_a_file_of_names_is_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.txt"
    names.write_text("a/b\n")

    assert init(tmp_path, "--from", "mqtt", "--to", "nats", "--names", str(names)) == 2

    assert f"{names} is a file; did you mean --list {names}?" in capsys.readouterr().err


WRONG = [
    pytest.param(("--names", "a/#/b"), "init: mqtt: 'a/#/b/{rest...}' at", id="names"),
    pytest.param(("--names", "a", "--to-address", "host"), "'host' is no address", id="address"),
    pytest.param(("--names", "a", "--to-address", "foo # bar:1"), "is no address", id="comment"),
    pytest.param(("--names", "a", "--to-address", "::1:1883"), "such as", id="no-brackets"),
    pytest.param(("--names", "a", "--to-address", "h:70000"), "'h:70000' is no", id="port"),
    pytest.param(("--names", "a", "--to-address", "[x]:1"), "'[x]:1' is no", id="no-address-6"),
    pytest.param(("--names", "a", "--to-address", "tcp://h:1"), "is no address", id="url"),
]


@pytest.mark.parametrize(("more", "text"), WRONG)
def test_a_wrong_answer_writes_nothing(
    tmp_path: Path, more: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tmp_path, "--from", "mqtt", "--to", "mqtt", *more) == 2

    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_the_port_of_a_second_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["init", "--help"])
    shown = " ".join(capsys.readouterr().out.split())

    assert init(tmp_path, "--from", "mqtt", "--to", "mqtt", "--names", "a") == 0

    assert "port: 1884" in (tmp_path / "gateway.yaml").read_text()
    assert "or the next one where the source has the same one" in shown


def test_an_existing_file_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gateway.yaml").write_text("mine")

    assert init(tmp_path, "--from", "mqtt", "--to", "mqtt", "--names", "a") == 2

    assert "exists; remove it, or write another file" in capsys.readouterr().err
    assert (tmp_path / "gateway.yaml").read_text() == "mine"


def test_an_absent_folder_is_made(tmp_path: Path) -> None:
    assert init(tmp_path / "new", "--from", "mqtt", "--to", "mqtt", "--names", "a") == 0

    assert (tmp_path / "new" / SCHEMA_FILE).exists()


def test_without_a_terminal_every_answer_is_an_option(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "init", "--from", "mqtt"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == "gateway: init: no terminal to ask at; give --to\n"


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "init"],
        cwd=tmp_path, stdin=end, stdout=end, stderr=end, close_fds=True,
    ) as process:  # fmt: skip
        os.close(end)
        os.write(terminal, b"\nrabbit\nyami4\nplant\n")  # the default, a wrong and a right one
        shown = read_all(terminal)
    os.close(terminal)

    assert process.returncode == 0, shown
    assert f"From which system? ({', '.join(starters())}) [mqtt]" in " ".join(shown.split())
    assert "'rabbit' is none of them" in shown
    text = (tmp_path / "gateway.yaml").read_text()
    assert 'template: "plant.{rest...}"' in text


def read_all(terminal: int) -> str:
    """Read what a process writes to its terminal until it ends."""
    parts: list[bytes] = []
    try:
        while part := os.read(terminal, 4096):
            parts.append(part)
    except OSError:  # Linux: the process has closed the other end
        pass
    return b"".join(parts).decode()


@pytest.mark.parametrize(
    ("target", "names", "pattern", "template"),
    [
        ("mqtt", "a.{x}:{y...}", "a.{x}", "a/{x}"),
        ("nats", "orders", "orders", "orders"),
        ("kafka", "a.{x...}:{y...}", "a.{x...}", "a.{x...}"),
    ],
)
def test_a_route_for_messages_without_a_key_stands_as_a_comment(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    target: str,
    names: str,
    pattern: str,
    template: str,
) -> None:
    file = tmp_path / "gateway.yaml"
    assert init(tmp_path, "--from", "kafka", "--to", target, "--names", names) == 0
    assert "messages without a key need the route" in capsys.readouterr().out
    file.write_text(file.read_text().replace("  # | ", "  "))

    keyed, keyless = load(file, without_secrets=True).routes
    assert (keyless.source.text, keyless.targets[0].templates[0].text) == (pattern, template)
    for name in ("a.b", "a.b:", "a.b:c", "orders", "orders:", "orders:1"):
        levels = parse_subject(name, keyed.dialect).levels
        taken = name.startswith(pattern[:2])
        assert keyless.takes(levels) is (taken and ":" not in name), name
        assert keyed.takes(levels) is (taken and ":" in name), name


def test_other_names_need_no_such_route(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--from", "mqtt", "--to", "kafka", "--names", "orders") == 0

    assert "without a key" not in capsys.readouterr().out
