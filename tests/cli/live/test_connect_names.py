"""`gateway connect` asks what takes the messages of the targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main
from tests.brokers.nats_server import StartNats
from tests.brokers.rabbitmq_server import Vhost

ROUTES = """\
routes:
  r:
    from: {endpoint: plant, pattern: "line/{rest...}"}
    to: {endpoint: bus, template: "line.{rest...}", on_too_long: refuse}
"""


def connect(folder: Path, bus: str, status: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what the command prints about `bus`, without its connection."""
    file = folder / "gateway.yaml"
    file.write_text(f"endpoints:\n  plant: {{kind: memory}}\n  bus: {bus}\n{ROUTES}")
    assert main(["connect", str(file)]) == status
    lines = [each for each in capsys.readouterr().out.splitlines() if each.startswith("bus: ")]
    assert lines[0].startswith("bus: connected to ")
    return lines[1:]


@pytest.mark.broker
def test_a_subject_without_a_stream_is_no_good_connection(
    tmp_path: Path, start_nats: StartNats, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start_nats()
    bus = f'{{kind: nats, url: "{server.url}"}}'

    todo = "create one, or write `stream`, `subjects` and `create_stream: true`"
    assert connect(tmp_path, bus, 1, capsys) == [
        f"bus: no stream has {each!r}: each message there becomes a dead letter `no-stream`; {todo}"
        for each in ("line", "line.>")
    ]
    assert connect(tmp_path, f"{bus[:-1]}, jetstream: false}}", 0, capsys) == []
    made = f'{bus[:-1]}, stream: LINE, subjects: [line, "line.>"], create_stream: true}}'
    assert connect(tmp_path, made, 0, capsys) == [
        "bus: 'line' is in the stream LINE",
        "bus: 'line.>' is in the stream LINE",
    ]


@pytest.mark.broker
@pytest.mark.nightly
def test_a_user_who_may_not_ask_is_told(
    tmp_path: Path, start_nats: StartNats, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start_nats(
        "authorization {users = [{user: a, password: b, permissions: {publish: {deny:"
        ' ["$JS.API.STREAM.NAMES"]}}}]}'
    )
    bus = f'{{kind: nats, url: "{server.url}", username: a, password: "${{env:NATS_WORD}}"}}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NATS_WORD", "b")
        lines = connect(tmp_path, bus, 0, capsys)

    for line, each in zip(lines, ("line", "line.>"), strict=True):
        assert line.startswith(f"bus: it is not known which stream has {each!r}: ")
        assert "$js.api.stream.names" in line  # as the server spells it


@pytest.mark.broker
def test_rabbitmq_does_not_tell_whether_a_queue_is_bound(
    tmp_path: Path, rabbitmq: Vhost, capsys: pytest.CaptureFixture[str]
) -> None:
    bus = f'{{kind: rabbitmq, url: "{rabbitmq.url}"}}'

    (line,) = connect(tmp_path, bus, 0, capsys)
    assert line == (
        "bus: the exchange 'amq.topic' is there; only a message shows whether a queue is bound to"
        " it for 'line.#': without one it becomes a dead letter `unroutable`"
    )
