"""Log lines: JSON for machines, one readable line for people; never a payload or a secret."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TextIO

from gateway.logs.redaction import Redactor
from gateway.logs.repeats import Repeats

log = logging.getLogger(__name__)

FORMATS = ("auto", "text", "json")
LEVELS = ("debug", "info", "warning", "error")
LOUD_SECONDS = 300.0  # a level raised by hand goes back by itself, so that nobody forgets it
_STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def set_up_logging(
    level: str, form: str, stream: TextIO | None = None, repeats: float = 10.0
) -> Journal:
    """Send the gateway's log to `stream` (standard error) in `form`, one of FORMATS.

    A line that comes again within `repeats` seconds is counted and said once; 0 says all.
    """
    stream = stream or sys.stderr
    redactor = Redactor()
    as_text = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter(redactor) if as_text else JsonFormatter(redactor))
    return Journal(level, handler, redactor, Repeats(repeats, facts, handler.handle))


class Journal:
    """The process's log while it runs; mutable: its level changes, and what it must not say."""

    def __init__(
        self, level: str, handler: logging.Handler, redactor: Redactor, repeats: Repeats
    ) -> None:
        self._level = level.upper()
        self._redactor, self._repeats = redactor, repeats
        self._back: threading.Timer | None = None
        self._root = logging.getLogger("gateway")
        handler.addFilter(repeats)
        self._root.handlers[:] = [handler]
        self._root.setLevel(self._level)
        self._root.propagate = False

    def hide(self, secrets: Iterable[str]) -> None:
        """Never write these texts, whoever puts them into a line."""
        self._redactor.hide(secrets)

    def louder(self, seconds: float = LOUD_SECONDS) -> None:
        """Say everything, repeated lines too, for `seconds`; once more begins anew."""
        self._change("DEBUG", counting=False)
        log.info("the log says everything", extra={"seconds": seconds})
        self._back = threading.Timer(seconds, self.normal)
        self._back.daemon = True
        self._back.start()

    def normal(self) -> None:
        """Go back to the level of the start."""
        log.info("the log is as it was", extra={"level_name": self._level.lower()})
        self._change(self._level, counting=True)

    def close(self) -> None:
        """Say what is still counted; the log goes on working."""
        self._change(self._level, counting=True)
        self._repeats.flush()

    def _change(self, level: str, *, counting: bool) -> None:
        back, self._back = self._back, None
        if back is not None:
            back.cancel()
        self._repeats.counting = counting
        self._root.setLevel(level)


def facts(record: logging.LogRecord) -> dict[str, object]:
    """What a line says beside its message."""
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD}


class JsonFormatter(logging.Formatter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": time, "level": record.levelname.lower()}
        line |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(self._redactor.clean(line | facts(record)))


class TextFormatter(logging.Formatter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
        said = " ".join(f"{key}={value}" for key, value in facts(record).items())
        text = f"{time} {record.levelname.lower():7} {record.getMessage()}"
        line = _on_one_line(f"{text}  {said}" if said else text)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return self._redactor.redact(line)


def _on_one_line(text: str) -> str:
    """What a peer sent cannot begin a line of its own, nor move the reader's cursor."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
