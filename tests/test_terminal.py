"""No text of a message reaches the terminal with a control character, in any command."""

from __future__ import annotations

import ast
import io
import logging
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gateway.cli import main
from gateway.cli.live.dashboard import dashboard, unreachable
from gateway.cli.live.run import log_unhandled_errors
from gateway.errors import GatewayError
from gateway.logs.lines import set_up_logging
from gateway.model.message import Headers, Message
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.outbound.dead_letters import DeadLetters
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.terminal.console import print_lines
from gateway.terminal.text import visible, visible_lines, visible_values
from gateway.web.snapshot import snapshot_json
from tests.waiting import PATIENCE
from tests.web.status_samples import FakeStatus, endpoint, refusal, route, status

CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"  # OSC 52: writes to the clipboard of the reader
HOSTILE = f"a{CLIPBOARD}\x9b2J\r\n\u202eb\x7f"
CONFIG = """
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
routes:
  orders: {{from: {{endpoint: plant, pattern: "a/#"}}, to: {{endpoint: plant, template: b}}}}
spool: {{path: {folder}/spool}}
"""
MAY_PRINT = {"dumps", "answer_line", "visible_lines"}  # what they return is safe


def unsafe(text: str) -> list[str]:
    """Return the characters that a terminal may interpret; colours of the console are none."""
    return [char for char in text.replace("\n", "") if not char.isprintable()]


@given(st.text())
def test_visible_text_is_one_printable_line(text: str) -> None:
    assert visible(text).isprintable()
    assert text.isprintable() is (visible(text) == text)


def test_lines_and_values_keep_their_form() -> None:
    assert visible_lines("a\x1b\nb", "  ") == "  a\\x1b\n  b"
    assert visible_values({"\x1b": ["\x07", 1, None, True]}) == {"\\x1b": ["\\x07", 1, None, True]}


def test_the_dashboard_shows_a_hostile_status() -> None:
    hostile = status(
        gateway=HOSTILE,
        endpoints=(endpoint(HOSTILE, HOSTILE, system=HOSTILE, connection="lost", reason=HOSTILE),),
        routes=(
            route(HOSTILE, guarantee=HOSTILE, rules={HOSTILE: 1}, refusals=(refusal(HOSTILE),)),
        ),
    )
    shown = snapshot_json(FakeStatus(hostile).snapshot())
    console = Console(file=io.StringIO(), width=400, force_terminal=False)
    print_lines([*dashboard(shown, shown, console), unreachable(HOSTILE)], console)

    assert isinstance(console.file, io.StringIO)
    assert not unsafe(console.file.getvalue())
    assert console.file.getvalue().count(visible(CLIPBOARD)) >= 8


@pytest.mark.parametrize("action", ["list", "show", "replay --dry-run", "replay"])
def test_dead_letters_with_hostile_texts_are_visible(
    tmp_path: Path, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(CONFIG.format(folder=tmp_path))
    message = Message(f"c{HOSTILE}", HOSTILE.encode(), Headers(properties={HOSTILE: HOSTILE}))
    letter = DeadLetter(
        0, 1, bytes(16), "orders", "plant", f"a/{HOSTILE}", HOSTILE, "plant", HOSTILE, HOSTILE, 1,
        message,
    )  # fmt: skip
    database = SpoolDatabase(tmp_path / "spool")
    DeadLetters(database, 1 << 20).put([letter], lambda: None)
    assert database.flush(PATIENCE)
    database.close(PATIENCE)
    main(["dead-letters", *action.split(), str(config)])
    printed = capsys.readouterr()

    assert not unsafe(printed.out + printed.err)
    assert "\\x1b" in printed.out + printed.err or action == "replay"


def test_a_traceback_in_the_log_cannot_forge_a_line() -> None:
    stream = io.StringIO()
    log_control = set_up_logging("info", "text", stream)
    error = ValueError(f"{CLIPBOARD}\n12:00:00.000 info    forged")
    logging.getLogger("gateway.test").error("failed", exc_info=error)
    log_control.close()

    first, *others = stream.getvalue().splitlines()
    assert first.endswith("failed")
    assert all(line.startswith("  ") for line in others)
    assert not unsafe(stream.getvalue())


def test_an_error_that_no_code_catches_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError(CLIPBOARD)

    def fail() -> None:
        raise ValueError(CLIPBOARD)

    monkeypatch.setattr(threading, "excepthook", threading.excepthook)  # restored afterwards
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    stream = io.StringIO()
    log_control = set_up_logging("info", "text", stream, repeats=0)
    ended: list[str] = []
    log_unhandled_errors(ended.append)
    thread = threading.Thread(target=fail, name="spool")
    thread.start()
    thread.join(PATIENCE)
    Broken()
    log_control.close()

    assert ended == [f"thread spool ended: ValueError: {CLIPBOARD}"]
    assert "a thread ended by an error" in stream.getvalue()
    assert "a callback failed" in stream.getvalue()
    assert stream.getvalue().count(f"ValueError: {visible(CLIPBOARD)}") == 2
    assert not unsafe(stream.getvalue())


@pytest.mark.parametrize("error", [GatewayError(CLIPBOARD), ValueError(CLIPBOARD)])
def test_an_error_of_a_command_is_visible(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr("gateway.cli.mapping.schema.run", fail)

    assert main(["schema"]) == 2
    assert visible(CLIPBOARD) in (printed := capsys.readouterr().err)
    assert not unsafe(printed)


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", HOSTILE, "--from", "ems", "--to", "mqtt"],
        ["match", HOSTILE, HOSTILE, "--system", "mqtt"],
        ["explain", HOSTILE, "--config", "CONFIG"],
        ["preflight", "NAMES", "--from", "mqtt", "--to", "ems,solace", "--all"],
    ],
)
def test_a_command_over_names_prints_visible_text(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    config, names = tmp_path / "gateway.yaml", tmp_path / "names"
    config.write_text(CONFIG.format(folder=tmp_path))
    names.write_text(HOSTILE, newline="")
    files = {"CONFIG": str(config), "NAMES": str(names)}
    main([files.get(word, word) for word in arguments])
    printed = capsys.readouterr()

    assert printed.out + printed.err
    assert not unsafe(printed.out + printed.err)


def test_commands_print_with_print_line() -> None:
    """A `print` in a command has JSON, text that was made visible, or constants and numbers."""
    gateway = Path(__file__).parents[1] / "gateway"
    folder = gateway / "cli"  # `import` prints YAML, whose writer escapes
    files = [*(folder / "live").glob("*.py"), *(folder / "mapping").glob("*.py")]
    files += [folder / "__init__.py", gateway / "night" / "cli" / "replay.py"]
    found = [
        f"{file.name}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "print" and not is_safe(node)
    ]

    assert found == []


def is_safe(call: ast.Call) -> bool:
    if not call.args:
        return True  # an empty line
    (argument,) = call.args
    if not isinstance(argument, ast.Call):
        return False
    function = argument.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in MAY_PRINT or (name == "format" and "_WITHOUT_PAYLOAD" in ast.unparse(function))
