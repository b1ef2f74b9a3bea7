"""Every command that the documents print runs, or has a reason why it does not run in a test."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
import yaml

from gateway.trial.brokers.activemq import client_jars, missing
from gateway.trial.brokers.listening import free_port
from tests.docs_groups import (
    COMMANDS,
    EMS,
    EXCUSED,
    LONG,
    README,
    SERVERS,
    SOLACE,
    STATUS,
    Story,
    group_of,
    of,
)
from tests.docs_world import (
    PATH,
    STAND_INS,
    environment,
    in_background,
    make_world,
    run_command,
    stand_in,
    write_named_files,
)
from tests.printed_commands import ROOT, Command, fences, page_commands, sections
from tests.waiting import PATIENCE, until


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


@pytest.fixture
def own_world(world: Path, tmp_path: Path) -> Path:
    return shutil.copytree(world, tmp_path / "world", symlinks=True)


@pytest.fixture(scope="module")
def running(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Stand-ins for the process and the address of a gateway that is ready."""
    folder = shutil.copytree(world, tmp_path_factory.mktemp("run") / "world", symlinks=True)
    port, config, output = free_port(), folder / "gateway.yaml", folder / "out"
    url = f"http://127.0.0.1:{port}"
    config.write_text(f"{config.read_text()}web: {{port: {port}}}\n")
    with in_background(folder, "gateway run gateway.yaml", output) as process:
        until(lambda: run_command(folder, f"gateway status --url {url}") == 0)
        yield {"PID": str(process.pid), "URL": url}


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@of("quick")
def test_a_command_runs(
    command: Command,
    own_world: Path,
    running: Mapping[str, str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    status = run_command(own_world, stand_in(command.text, running))

    printed = capfd.readouterr()
    text = printed.out + printed.err
    assert status == STATUS.get(command.text, 0), text
    assert command.output is None or text.strip() == command.output.strip()


@of("server")
def test_a_server_starts_and_ends(command: Command, own_world: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    (ready,) = (text for begin, text in SERVERS.items() if command.text.startswith(begin))

    with in_background(own_world, stand_in(command.text, {}), output):
        until(lambda: ready in output.read_text())


def benchmarks() -> list[Command]:
    found = [each for each in COMMANDS if each.text.startswith("python -m benchmarks")]
    return [each for each in found if each.words[-1] != "NAME"]


@of("excused")
def test_a_command_without_a_test_names_existing_files(command: Command) -> None:
    named = [word for word in command.words if word.startswith(("deploy/", "tests/"))]

    assert [each for each in named if not list(ROOT.glob(each))] == []


@pytest.mark.parametrize("command", benchmarks(), ids=lambda each: each.text)
def test_a_benchmark_has_the_printed_options(command: Command) -> None:
    module, *rest = command.words[2:]
    name = module if "." in module else f"{module}.{rest[0]}"
    source = (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")

    assert [word for word in rest if word.startswith("--") and f'"{word}"' not in source] == []


def test_the_tables_have_no_entry_without_a_printed_command() -> None:
    printed = [each.text for each in COMMANDS]
    text = "\n".join(printed)

    outside = [each.text for each in COMMANDS if each.caption is None]
    assert [each for each in EXCUSED if not any(one.startswith(each) for one in outside)] == []
    assert [each for each in STATUS if each not in printed] == []
    for each, used in STAND_INS:
        assert each in text
        text = text.replace(each, used)


@pytest.mark.broker
def test_the_first_block_delivers_as_one_paste(tmp_path: Path) -> None:
    if shutil.which("mosquitto_pub") is None or shutil.which("mosquitto", path=PATH) is None:
        pytest.skip("no mosquitto: apt-get install mosquitto mosquitto-clients")
    ports = [free_port() for _ in range(3)]
    swaps = {text: used.format(*ports) for text, used in README.swaps.items()}
    body = dict(sections((ROOT / README.page).read_text("utf-8")))[README.section]
    write_named_files(tmp_path, stand_in(body, swaps))
    (block,) = fences("sh", body)
    with environment(tmp_path, {}):
        shell = subprocess.Popen(
            ["/bin/bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    try:
        printed, _ = shell.communicate(f"{stand_in(block, swaps)}kill $(jobs -p)\nwait\n", PATIENCE)
    finally:
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(shell.pid, signal.SIGKILL)

    assert README.arrives in printed.splitlines(), (tmp_path / "plant.log").read_text()


@pytest.mark.broker
def test_a_message_arrives(tmp_path: Path) -> None:
    carry(SOLACE, tmp_path)


@pytest.mark.nightly
@pytest.mark.broker
def test_a_message_arrives_through_activemq(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)

    outputs = carry(EMS, tmp_path)

    config = yaml.safe_load((tmp_path / EMS.file).read_text())
    printed = yaml.safe_load(outputs["gateway broker activemq --port 61616"].read_text())
    assert printed == {key: config["endpoints"]["core"][key] for key in printed}
    assert printed["classpath"] == list(client_jars())


def carry(story: Story, folder: Path) -> dict[str, Path]:
    """Run the commands of a story until the message arrives; return the files with their output."""
    if shutil.which("mosquitto_pub") is None or shutil.which("mosquitto", path=PATH) is None:
        pytest.skip("no mosquitto: apt-get install mosquitto mosquitto-clients")
    ports = [free_port(), free_port()]
    swaps = {text: used.format(*ports) for text, used in story.swaps.items()}
    body = dict(sections((ROOT / story.page).read_text("utf-8")))[story.section]
    assert story.arrives in body
    write_named_files(folder, stand_in(body, swaps), story.file)
    outputs: dict[str, Path] = {}
    variables: dict[str, str] = {}
    publish = ""
    with ExitStack() as stack:
        for text in [*story.before, *story_commands(story)]:
            used = stand_in(text, swaps)
            if text.startswith("mosquitto_pub "):
                publish = used
            elif text.startswith("export "):
                name, _, variables[name] = text.removeprefix("export ").partition("=")
            elif not text.startswith(LONG):
                assert run_command(folder, used, variables) == 0
            else:
                outputs[text] = folder / f"{len(outputs)}.out"
                stack.enter_context(in_background(folder, used, outputs[text], variables))
                await_start(story, used, outputs[text], ports)

        def arrived() -> bool:  # a message from before the subscriptions is not kept
            assert run_command(folder, publish) == 0
            return any(story.arrives in each.read_text() for each in outputs.values())

        until(arrived)
    return outputs


def story_commands(story: Story) -> list[str]:
    """Return the section's commands; the message is published last, when all others run."""
    printed = page_commands(story.page, (ROOT / story.page).read_text("utf-8"))
    found = [
        each.text for each in printed if each.section == story.section and group_of(each) == "story"
    ]
    return sorted(found, key=lambda text: text.startswith("mosquitto_pub "))


def await_start(story: Story, text: str, output: Path, ports: Sequence[int]) -> None:
    """Return when a broker listens, or when a gateway is connected."""
    if text.startswith("gateway run "):
        until(lambda: output.read_text().count("connected") >= story.connections)
    for port in ports:
        if str(port) in text.split():
            until(partial(listens, port))
