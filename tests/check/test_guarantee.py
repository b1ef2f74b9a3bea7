"""The guarantee of a target that knows repeated messages by their ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main

MAPPING = """\
endpoints:
  here: {{{source}}}
  there: {{kind: nats, {target}}}
routes:
  r: {{from: {{endpoint: here, pattern: "{pattern}"}}, to: {{endpoint: there{more}}}}}
"""
BUS = "kind: nats, url: 'nats://other:4222'"


@pytest.mark.parametrize(
    ("source", "pattern", "target", "more", "line"),
    [
        pytest.param(
            BUS, "a.>", "duplicate_window: 30", "", "at least once, and once within 30 s",
            id="id-of-the-source",
        ),
        pytest.param(
            "kind: mqtt", "a/#", "url: 'nats://x:4222'", ", add_message_id: true",
            "at least once, and once within 120 s", id="id-of-the-gateway",
        ),
        pytest.param(
            "kind: mqtt", "a/#", "url: 'nats://x:4222'", "", "at least once", id="no-id"
        ),
        pytest.param(
            BUS, "a.>", "jetstream: false", "", "at most once", id="no-stream"
        ),
    ],
)  # fmt: skip
def test_a_target_that_knows_repeats_keeps_one_within_its_window(  # a table
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
    source: str, pattern: str, target: str, more: str, line: str,
) -> None:  # fmt: skip
    file = tmp_path / "gateway.yaml"
    file.write_text(MAPPING.format(source=source, pattern=pattern, target=target, more=more))

    assert main(["check", str(file)]) == 0, capsys.readouterr()

    shown = [each.strip().partition(";")[0] for each in capsys.readouterr().out.splitlines()]
    assert line in shown


@pytest.mark.parametrize(
    ("version", "more", "lost"),
    [
        ("5", "", False),
        ("3.1.1", "", True),
        ("3.1.1", ", headers: {set: {retained: true}}", False),
    ],
)
def test_a_source_that_gets_live_messages_without_the_flag_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, more: str, lost: bool
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints:\n"
        f"  here: {{kind: mqtt, host: a, version: '{version}'}}\n"
        "  there: {kind: mqtt, host: b, version: '3.1.1'}\n"
        "routes:\n"
        f"  r: {{from: {{endpoint: here, pattern: 'a/#'}}, to: {{endpoint: there{more}}}}}\n"
    )
    assert main(["check", str(file)]) == 0, capsys.readouterr()

    (line,) = (each for each in capsys.readouterr().out.splitlines() if "at least once" in each)
    assert ("retained" in line.partition("cannot cross: ")[2].split(", ")) is lost
