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
from gateway.logs.lines import Journal, facts, set_up_logging
from gateway.logs.redaction import HIDDEN, SHORTEST, Redactor, secrets_of
from gateway.logs.repeats import MOST, Repeats
from tests.waiting import PATIENCE

log = logging.getLogger("gateway.test")
SECRETS = ["hunter2", 'quo"te\\d', "päss wörd", "a.b*c", "new\nline"]


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    root = logging.getLogger("gateway")
    before = (root.handlers[:], root.level, root.propagate)
    yield
    root.handlers[:], root.level, root.propagate = before


def journal(form: str = "json", repeats: float = 0.0) -> tuple[Journal, io.StringIO]:
    stream = io.StringIO()
    return set_up_logging("info", form, stream, repeats), stream


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def messages(stream: io.StringIO) -> list[object]:
    return [line["message"] for line in lines(stream)]


def test_the_level_goes_up_and_back_by_hand() -> None:
    told, stream = journal()
    log.debug("before")
    told.louder()
    log.debug("while")
    told.normal()
    log.debug("after")

    assert messages(stream) == ["the log says everything", "while", "the log is as it was"]


def test_the_level_goes_back_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _ = journal()
    back = threading.Event()
    normal = told.normal

    def tell() -> None:
        normal()
        back.set()

    monkeypatch.setattr(told, "normal", tell)
    told.louder(0.01)

    assert back.wait(PATIENCE)
    assert not log.isEnabledFor(logging.DEBUG)


def test_raising_the_level_again_begins_anew() -> None:
    others = set(threading.enumerate())  # other tests have timers too
    told, _ = journal()
    told.louder(3600)
    told.louder(3600)
    alive = [each for each in set(threading.enumerate()) - others if hasattr(each, "finished")]
    told.normal()

    assert len([each for each in alive if not each.finished.is_set()]) == 0
    assert not log.isEnabledFor(logging.DEBUG)


def record(text: str, at: float, **more: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "gateway.x", "levelno": 30, "levelname": "WARNING", "msg": text, "created": at}
        | more
    )


class Said:
    """What passes a filter for repeated lines; mutable, it grows."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.texts: list[str] = []
        self.repeats = Repeats(seconds, facts, self.take)

    def take(self, said: logging.LogRecord) -> None:
        self.texts.append(said.getMessage())

    def give(self, *records: logging.LogRecord) -> list[str]:
        for each in records:
            if self.repeats.filter(each):
                self.take(each)
        return self.texts


def test_equal_lines_are_counted_and_said_once() -> None:
    again = [record("lost", at) for at in (0.0, 1.0, 9.9)]

    assert Said().give(*again, record("other", 10.0)) == [
        "lost", "lost (repeated 2 times)", "other",
    ]  # fmt: skip


def test_the_number_has_the_time_of_the_last() -> None:
    said: list[float] = []
    repeats = Repeats(10.0, facts, lambda summary: said.append(summary.created))
    for at in (0.0, 1.0, 9.9):
        repeats.filter(record("lost", at))
    repeats.flush()

    assert said == [9.9]


def test_a_line_that_comes_later_is_said_again() -> None:
    assert Said().give(record("lost", 0.0), record("lost", 10.0)) == ["lost", "lost"]


def test_other_facts_make_another_line() -> None:
    said = Said().give(*(record("lost", 0.0, endpoint=name) for name in "aba"))

    assert said == ["lost", "lost"]


def test_a_clock_that_goes_back_hides_nothing_for_long() -> None:
    assert Said().give(record("lost", 1000.0), record("lost", 5.0)) == ["lost", "lost"]


def test_what_no_line_brings_out_a_timer_does() -> None:
    said = threading.Event()
    repeats = Repeats(0.01, facts, lambda _: said.set())
    repeats.filter(record("lost", 0.0))
    repeats.filter(record("lost", 0.005))

    assert said.wait(PATIENCE)


def test_what_is_counted_is_bounded() -> None:
    said = Said()
    said.give(*(record(f"line {n}", 0.0) for n in range(MOST)))

    assert said.give(record("one more", 0.0), record("one more", 0.0))[-2:] == ["one more"] * 2


def test_every_line_is_said_or_counted() -> None:
    told, stream = journal(repeats=1e9)
    for number in range(30):
        log.warning("lost", extra={"endpoint": f"e{number % 3}"})
    told.close()

    said = lines(stream)
    assert len(said) == 6
    assert sum(int(str(line.get("repeated", 1))) for line in said) == 30


def test_a_raised_level_says_repeated_lines_too() -> None:
    told, stream = journal(repeats=1e9)
    told.louder()
    log.warning("lost")
    log.warning("lost")
    told.close()

    assert messages(stream)[1:] == ["lost", "lost"]


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_never_written(form: str, secret: str) -> None:
    told, stream = journal(form)
    told.hide(SECRETS)
    log.info("refused: %s", secret, extra={"as_it_is": secret, "shown": repr(secret)})
    fault = ValueError(f"driver: bad credentials for {secret}")
    log.error("a fault", exc_info=fault)

    written = stream.getvalue()
    assert HIDDEN in written
    assert secret not in written
    assert json.dumps(secret)[1:-1] not in written
    assert repr(secret)[1:-1] not in written


PLAIN = st.text(st.characters(exclude_characters="*"))


@given(secret=PLAIN.filter(lambda text: len(text) >= SHORTEST), before=PLAIN, after=PLAIN)
def test_no_text_around_it_brings_a_secret_out(secret: str, before: str, after: str) -> None:
    redactor = Redactor()
    redactor.hide([secret])
    cleaned = redactor.clean({"facts": [before + secret + after, 1]})

    assert secret not in str(cleaned["facts"][0])  # type: ignore[index]  # it is what went in
    assert HIDDEN in str(cleaned)


def test_one_secret_inside_another_leaves_no_rest() -> None:
    redactor = Redactor()
    redactor.hide(["secret", "secret-and-more"])

    assert redactor.redact("x secret-and-more y") == f"x {HIDDEN} y"


def test_a_password_in_a_url_is_hidden_though_nobody_named_it() -> None:
    assert Redactor().redact("tcp://me:hunter2@b:1, x@y") == f"tcp://{HIDDEN}@b:1, x@y"


def test_what_a_peer_sends_stays_on_its_line() -> None:
    _, stream = journal("text")
    log.info("name %s", "a\n12:00:00.000 error   forged\x1b[2J", extra={"fact": "b\r\nc"})

    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_every_secret_of_a_configuration_is_known(tmp_path: Path) -> None:
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
