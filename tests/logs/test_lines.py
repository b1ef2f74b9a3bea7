"""Log lines: levels, repeated lines and redaction."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.load import load
from gateway.logs.lines import LogControl, extra_fields, set_up_logging
from gateway.logs.redaction import HIDDEN, MIN_SECRET_LENGTH, Redactor, secrets_of
from gateway.logs.repeats import MAX_COUNTED_LINES, RepeatFilter
from tests.waiting import PATIENCE

log = logging.getLogger("gateway.test")
SECRETS = ["hunter2", 'quo"te\\d', "päss wörd", "a.b*c", "new\nline"]


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    root = logging.getLogger("gateway")
    handlers, level, propagate = root.handlers[:], root.level, root.propagate
    yield
    root.handlers[:], root.propagate = handlers, propagate
    root.setLevel(level)  # an assignment leaves what the loggers below remember of the level


def start_log(form: str = "json", repeats: float = 0.0) -> tuple[LogControl, io.StringIO]:
    stream = io.StringIO()
    return set_up_logging("info", form, stream, repeats), stream


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def messages(stream: io.StringIO) -> list[object]:
    return [line["message"] for line in lines(stream)]


def test_the_level_is_raised_and_restored_on_request() -> None:
    log_control, stream = start_log()
    log.debug("before")
    log_control.raise_level()
    log.debug("while")
    log_control.restore_level()
    log.debug("after")

    assert messages(stream) == ["log level raised to debug", "while", "log level restored"]


def test_the_level_is_restored_by_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    log_control, _ = start_log()
    restored = threading.Event()
    restore_level = log_control.restore_level

    def restore() -> None:
        restore_level()
        restored.set()

    monkeypatch.setattr(log_control, "restore_level", restore)
    log_control.raise_level(0.01)

    assert restored.wait(PATIENCE)
    assert not log.isEnabledFor(logging.DEBUG)


def test_raising_the_level_again_restarts_the_time() -> None:
    others = set(threading.enumerate())  # other tests have timers too
    log_control, _ = start_log()
    log_control.raise_level(3600)
    log_control.raise_level(3600)
    alive = [each for each in set(threading.enumerate()) - others if hasattr(each, "finished")]
    log_control.restore_level()

    assert len([each for each in alive if not each.finished.is_set()]) == 0
    assert not log.isEnabledFor(logging.DEBUG)


def record(text: str, at: float, **more: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "gateway.x", "levelno": 30, "levelname": "WARNING", "msg": text, "created": at}
        | more
    )


class PassedLines:
    """The lines that pass a filter for repeated lines."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.texts: list[str] = []
        self.repeats = RepeatFilter(seconds, extra_fields, self.take)

    def take(self, line: logging.LogRecord) -> None:
        self.texts.append(line.getMessage())

    def pass_through(self, *records: logging.LogRecord) -> list[str]:
        for each in records:
            if self.repeats.filter(each):
                self.take(each)
        return self.texts


def test_equal_lines_are_counted_and_logged_once() -> None:
    again = [record("lost", at) for at in (0.0, 1.0, 9.9)]

    assert PassedLines().pass_through(*again, record("other", 10.0)) == [
        "lost", "lost (repeated 2 times)", "other",
    ]  # fmt: skip


def test_the_summary_has_the_time_of_the_last_line() -> None:
    times: list[float] = []
    repeats = RepeatFilter(10.0, extra_fields, lambda summary: times.append(summary.created))
    for at in (0.0, 1.0, 9.9):
        repeats.filter(record("lost", at))
    repeats.flush()

    assert times == [9.9]


def test_an_equal_line_after_the_time_is_logged_again() -> None:
    assert PassedLines().pass_through(record("lost", 0.0), record("lost", 10.0)) == ["lost", "lost"]


def test_lines_with_different_fields_are_different() -> None:
    passed = PassedLines().pass_through(*(record("lost", 0.0, endpoint=name) for name in "aba"))

    assert passed == ["lost", "lost"]


def test_a_clock_set_back_suppresses_no_line() -> None:
    assert PassedLines().pass_through(record("lost", 1000.0), record("lost", 5.0)) == [
        "lost",
        "lost",
    ]


def test_a_timer_emits_the_summary_without_a_later_line() -> None:
    emitted = threading.Event()
    repeats = RepeatFilter(0.01, extra_fields, lambda _: emitted.set())
    repeats.filter(record("lost", 0.0))
    repeats.filter(record("lost", 0.005))

    assert emitted.wait(PATIENCE)


def test_the_number_of_counted_lines_is_limited() -> None:
    lines = PassedLines()
    lines.pass_through(*(record(f"line {n}", 0.0) for n in range(MAX_COUNTED_LINES)))

    assert (
        lines.pass_through(record("one more", 0.0), record("one more", 0.0))[-2:]
        == ["one more"] * 2
    )


def test_every_line_is_logged_or_counted() -> None:
    log_control, stream = start_log(repeats=1e9)
    for number in range(30):
        log.warning("lost", extra={"endpoint": f"e{number % 3}"})
    log_control.close()

    logged = lines(stream)
    assert len(logged) == 6
    assert sum(int(str(line.get("repeated", 1))) for line in logged) == 30


def test_a_raised_level_logs_repeated_lines_too() -> None:
    log_control, stream = start_log(repeats=1e9)
    log_control.raise_level()
    log.warning("lost")
    log.warning("lost")
    log_control.close()

    assert messages(stream)[1:] == ["lost", "lost"]


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_never_written(form: str, secret: str) -> None:
    log_control, stream = start_log(form)
    log_control.hide(SECRETS)
    log.info("refused: %s", secret, extra={"as_it_is": secret, "shown": repr(secret)})
    fault = ValueError(f"driver: bad credentials for {secret}")
    log.error("an error", exc_info=fault)

    written = stream.getvalue()
    assert HIDDEN in written
    assert secret not in written
    assert json.dumps(secret)[1:-1] not in written
    assert repr(secret)[1:-1] not in written


TEXTS = st.text(st.characters(exclude_characters="*"))


@given(secret=TEXTS.filter(lambda text: len(text) >= MIN_SECRET_LENGTH), before=TEXTS, after=TEXTS)
def test_a_secret_is_redacted_inside_any_text(secret: str, before: str, after: str) -> None:
    redactor = Redactor()
    redactor.hide([secret])
    cleaned = redactor.clean({"facts": [before + secret + after, 1]})

    assert secret not in str(cleaned["facts"][0])  # type: ignore[index]  # it is what went in
    assert HIDDEN in str(cleaned)


def test_a_secret_that_contains_another_is_redacted_whole() -> None:
    redactor = Redactor()
    redactor.hide(["secret", "secret-and-more"])

    assert redactor.redact("x secret-and-more y") == f"x {HIDDEN} y"


def test_a_password_in_a_url_is_always_redacted() -> None:
    assert Redactor().redact("tcp://me:hunter2@b:1, x@y") == f"tcp://{HIDDEN}@b:1, x@y"


def test_control_characters_of_a_peer_are_escaped() -> None:
    _, stream = start_log("text")
    log.info("name %s", "a\n12:00:00.000 error   forged\x1b[2J", extra={"fact": "b\r\nc"})

    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_every_secret_of_a_configuration_is_found(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("""\
endpoints:
  a: {kind: mqtt, password: "${env:ONE}", tls: {key_password: "${env:TWO}"}}
  b:
    kind: jms
    urls: ["tcp://me:${env:THREE}@broker:7222"]
    properties: ["TrustStorePassword=${env:FOUR}", "name=value"]
routes:
  r: {from: {endpoint: a, pattern: x}, to: {endpoint: b}}
""")
    environment = {"ONE": "first", "TWO": "second", "THREE": "th%21rd", "FOUR": "fourth"}

    assert secrets_of(load(file, environment)) == {
        "first", "second", "th%21rd", "th!rd", "fourth",
    }  # fmt: skip


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),  # no-color.org: only a value turns colours off
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_a_terminal_has_levels_in_colour(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    set_up_logging("info", "auto", stream, repeats=0)
    log.info("a")
    log.warning("b \x1b[31m")
    log.error("c")

    texts = [line[13:] for line in stream.getvalue().splitlines()]  # without the time
    expected = ["info    a", "warning b \\x1b[31m", "error   c"]
    if coloured:
        expected = ["info    a", "\x1b[33mwarning\x1b[0m b \\x1b[31m", "\x1b[31merror  \x1b[0m c"]
    assert texts == expected


def test_a_file_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    _, stream = start_log("text")
    log.error("a")

    assert "\x1b" not in stream.getvalue()


def test_secrets_of_years_take_a_bounded_time_to_look_for() -> None:
    redactor = Redactor()
    redactor.hide(["of-the-start"])
    for number in range(1_000):
        redactor.learn(f"token-{number:04}")

    assert redactor.redact("token-0999 token-0940 of-the-start") == " ".join([HIDDEN] * 3)
    assert redactor.redact("token-0001") == "token-0001"
