from __future__ import annotations

import re
import shutil
from pathlib import Path
from socket import gethostname

import pytest

from gateway.cli import main, make_parser
from gateway.config.load import load
from gateway.errors import GatewayError
from gateway.imports.document import render
from gateway.imports.ems.importer import import_ems
from gateway.imports.imported_files import MAX_BYTES, site_of
from tests.imports.imported import QUIET, SAMPLES, import_alone


def run(*arguments: str) -> int:
    args = make_parser("import").parse_args(["import", *arguments])
    code: int = args.run(args)
    return code


def test_the_exit_code_is_zero_when_every_line_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EMS_CLASSPATH", "ems.jar")
    file = tmp_path / "bridges.conf"
    file.write_text("[topic:A.B]\nqueue=Q.B\n")

    assert run("ems", str(file)) == 0

    out, err = capsys.readouterr()
    assert 'template: "queue:Q.B"' in out
    assert "    # broker_id: SITE/localhost:7222  # SITE: a name of this site\n" in out
    assert err == (
        "gateway: with other gateways at these brokers, write each `broker_id`, and run gateway"
        " check MAPPING.yaml OTHER.yaml ...\n"
        "gateway: 1 route; 0 lines or options lost, 0 stay at the broker\n"
    )


BROKER_IDS = [
    pytest.param("h", "SITE/h:1883", id="name-without-a-dot"),
    pytest.param("mqtt.example.com", "mqtt.example.com:1883", id="default-port"),
    pytest.param("mqtt.example.com:1884 x.example.com", "mqtt.example.com:1884", id="several"),
    pytest.param("127.0.0.1:1884", "SITE/127.0.0.1:1884", id="loopback"),
]


@pytest.mark.parametrize(("address", "expected"), BROKER_IDS)
def test_each_endpoint_has_the_broker_id_to_choose(
    tmp_path: Path, address: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "mosquitto.conf", tmp_path / "plant.yaml"
    file.write_text(f"listener 1885\nconnection c\naddress {address}\ntopic a/# out\n{QUIET}")

    assert run("mosquitto", str(file), "-o", str(output)) == 0

    text = output.read_text(encoding="utf-8")
    note = "  # SITE: a name of this site"
    assert re.findall("# (broker_id: .*)", text) == [
        f"broker_id: SITE/localhost:1885{note}",
        f"broker_id: {expected}{note if expected.startswith('SITE/') else ''}",
    ]
    filled = text.replace("# broker_id: SITE", "# broker_id: north")
    output.write_text(filled.replace("# broker_id", "broker_id"), encoding="utf-8")
    names = {each.broker.given for each in load(output).endpoints.values()}
    assert names == {"north/localhost:1885", expected.replace("SITE", "north")}
    assert f"gateway check {output} OTHER.yaml ...\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("remote_username gw\n", "C_USERNAME"),
        ("remote_username gw\nremote_password x\n", "C_PASSWORD and C_USERNAME"),
    ],
)
def test_the_last_line_names_the_variables_to_set(
    tmp_path: Path, lines: str, names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "mosquitto.conf", tmp_path / "new" / "folder" / "plant.yaml"
    file.write_text(f"connection c\naddress h\n{lines}topic a/# out\n{QUIET}")

    assert run("mosquitto", str(file), "-o", str(output)) == 0

    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(
        f"stay at the broker; set {names} before `gateway check`, or give it --without-secrets"
    )
    assert main(["check", str(output)]) == 1
    assert "need none with --without-secrets" in capsys.readouterr().out
    assert main(["check", "--strict", "--without-secrets", str(output)]) == 0


def test_a_broker_without_a_bridge_has_no_routes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mosquitto.conf"
    file.write_text("listener 1883\npersistence true\n")

    assert run("mosquitto", str(file)) == 1

    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "gateway: no routes; 0 lines or options lost, 2 stay at the broker"


def test_a_line_that_stays_at_the_broker_is_no_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mosquitto.conf"
    bridge = f"connection c\naddress h\ntopic a/# out\n{QUIET}"
    file.write_text(f"listener 1883\nallow_anonymous true\n{bridge}")

    assert run("mosquitto", str(file)) == 0

    _, err = capsys.readouterr()
    assert "1: option 'listener', option 'allow_anonymous' (line 2): stays where it is" in err
    assert err.endswith("gateway: 1 route; 0 lines or options lost, 2 stay at the broker\n")


def test_the_exit_code_is_one_and_omitted_lines_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "mosquitto.conf", tmp_path / "plant.yaml"
    shutil.copy(SAMPLES / "mosquitto.conf", file)

    assert run("mosquitto", str(file), "-o", str(output)) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert f"{file}:25: option 'try_private': not carried over" in err
    assert output.read_text(encoding="utf-8").startswith("# Made by `gateway import mosquitto`")


def test_the_same_files_give_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(SAMPLES / f"{name}.conf") for name in ("bridges", "topics", "transports")]

    assert run("ems", *names) == run("ems", *names) == 1

    out, _ = capsys.readouterr()
    assert out[: len(out) // 2] == out[len(out) // 2 :]


UNREADABLE = [
    pytest.param(None, "cannot read the file: No such file or directory", id="absent"),
    pytest.param(b"connection\0", "the file is not text", id="binary"),
    pytest.param(b"#" * (MAX_BYTES + 1), "the file is larger than", id="large"),
]


@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, data: bytes | None, reason: str
) -> None:
    file = tmp_path / "mosquitto.conf"
    if data is not None:
        file.write_bytes(data)

    with pytest.raises(GatewayError, match=reason):
        run("mosquitto", str(file))


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="cannot write the file"):
        run("mosquitto", str(SAMPLES / "mosquitto.conf"), "-o", str(tmp_path))


def test_an_existing_output_is_not_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "plant.yaml"
    output.write_text("mine")

    with pytest.raises(
        GatewayError, match=r"plant\.yaml: exists; remove it, or write another file"
    ):
        run("mosquitto", str(SAMPLES / "mosquitto.conf"), "-o", str(output))

    assert output.read_text() == "mine"


def test_the_examples_of_the_manual_are_the_output_of_the_command() -> None:
    manual = Path(__file__).parents[2] / "docs" / "import.md"
    blocks = re.findall(r"```(conf|yaml)\n(.*?)```", manual.read_text(encoding="utf-8"), re.DOTALL)
    kinds = [kind for kind, _ in blocks]
    bridges, ems, connection, mosquitto = (text for _, text in blocks)

    assert kinds == ["conf", "yaml", "conf", "yaml"]
    assert ems in render(import_ems([("bridges.conf", bridges.encode())]))
    assert mosquitto in render(import_alone("mosquitto.conf", connection.encode()))


def test_an_imported_ems_bridge_passes_the_check_with_its_client_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "bridges.conf", tmp_path / "ems.yaml"
    file.write_text("[topic:A.B]\nqueue=Q.B\n")
    assert run("ems", str(file), "-o", str(output)) == 0
    assert main(["check", "--strict", "--without-secrets", str(output)]) == 0
    assert main(["check", str(output)]) == 1  # nothing names the library
    assert "nothing found for ${env:EMS_CLASSPATH}; set the variable" in capsys.readouterr().out

    (tmp_path / "tibjms.jar").write_bytes(b"")
    monkeypatch.setenv("EMS_CLASSPATH", str(tmp_path / "*.jar"))

    assert main(["check", "--strict", str(output)]) == 0
    configuration = load(output)
    assert configuration.archive is not None
    assert configuration.spool is not None
    assert configuration.web is not None
    assert configuration.gateway.name == f"{site_of(file)}-ems-bridge"


def test_the_same_file_at_two_sites_gives_two_names(tmp_path: Path) -> None:
    names = set()
    for site in ("north", "south"):
        file, output = tmp_path / site / "mosquitto.conf", tmp_path / site / "gw.yaml"
        file.parent.mkdir()
        file.write_text(f"connection hub\naddress h\ntopic a/# in\n{QUIET}")
        assert run("mosquitto", str(file), "-o", str(output)) == 0
        names.add(load(output).gateway.name)

    assert len(names) == 2
    host = gethostname().partition(".")[0][:20]
    assert all(name.startswith(f"{host}-") and name.endswith("-hub-bridge") for name in names)


def test_the_name_of_a_site_is_short_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.imports.imported_files.gethostname", lambda: f"{'h' * 60}.example")

    assert site_of(Path("/m")) == site_of(Path("/m"))
    assert re.fullmatch("h{20}-[0-9a-f]{8}", site_of(Path("/m")))


def test_a_folder_of_further_files_is_read_and_the_lines_of_the_broker_are_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = tmp_path / "conf.d", tmp_path / "mosquitto.conf"
    folder.mkdir()
    (folder / "b.conf").write_text(f"connection d\naddress h\ntopic b/# out\n{QUIET}")
    (folder / "a.conf").write_text(f"connection c\naddress h\ntopic a/# out\n{QUIET}")
    (folder / "a.conf.old").write_text("connection d\n")
    file.write_text(
        f"listener 1884\nallow_anonymous false\npersistence true\ninclude_dir {folder}\n"
    )

    assert run("mosquitto", str(file)) == 0

    out, err = capsys.readouterr()
    assert 'pattern: "a/{rest...}"' in out
    assert 'pattern: "b/{rest...}"' in out
    assert "username: ${env:C_LOCAL_USERNAME}" in out.replace('"', "")
    assert "mosquitto.conf:2: allow_anonymous is false" in " ".join(out.replace("#", "").split())
    assert err.splitlines()[0] == (
        f"{file}:1: option 'listener', option 'allow_anonymous' (line 2), option 'persistence'"
        " (line 3): stays where it is; it is an option of the broker and not of a bridge"
    )
    assert len(err.splitlines()) == 3


def test_a_folder_that_cannot_be_read_is_a_lost_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mosquitto.conf"
    file.write_text("connection c\naddress h\ntopic a/# out\ninclude_dir /none/such\n")

    assert run("mosquitto", str(file)) == 1
    line = "mosquitto.conf:4: option 'include_dir': not carried over; /none/such: cannot read"
    assert line in capsys.readouterr().err
