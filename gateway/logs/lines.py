"""Log set-up and formats: JSON lines for machines, text lines for people."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, TextIO

from gateway.logs.redaction import Redactor
from gateway.logs.repeats import RepeatFilter
from gateway.terminal.text import visible, visible_lines

log = logging.getLogger(__name__)

FORMATS: Final = ("auto", "text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
COLOURS: Final = {"DEBUG": "2", "WARNING": "33", "ERROR": "31", "CRITICAL": "31"}  # ANSI; ECMA-48
DEBUG_SECONDS: Final = 300.0  # after which a level raised at run time is restored
TRACEBACK_INDENT: Final = "  "  # a line end in the text of an error cannot start a log line
_STANDARD_FIELDS = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def set_up_logging(
    level: str, form: str, stream: TextIO | None = None, repeats: float = 10.0
) -> LogControl:
    """Send the gateway's log to `stream` (default standard error) in `form`, one of FORMATS.

    Equal lines within `repeats` seconds are counted and logged once; 0 logs each.
    """
    stream = stream or sys.stderr
    redactor = Redactor()
    as_text = form == "text" or (form == "auto" and stream.isatty())
    handler, others = logging.StreamHandler(stream), logging.StreamHandler(stream)
    text = TextFormatter(redactor, coloured=shows_colours(stream))
    for each in (handler, others):
        each.setFormatter(text if as_text else JsonFormatter(redactor))
    others.setLevel(logging.WARNING)
    logging.lastResort = others  # of asyncio and drivers, whose lines had another form
    return LogControl(level, handler, redactor, RepeatFilter(repeats, extra_fields, handler.handle))


def shows_colours(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal with colours: see no-color.org for NO_COLOR."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    return stream.isatty() and not plain


class LogControl:
    """Changes level and redaction of the log at run time.

    Mutable: `hide` and `close` are called by the main thread, `restore_level` also by a timer.
    """

    def __init__(
        self, level: str, handler: logging.Handler, redactor: Redactor, repeats: RepeatFilter
    ) -> None:
        self._level = level.upper()
        self._redactor, self._repeats = redactor, repeats
        self._timer: threading.Timer | None = None
        self._logger = logging.getLogger("gateway")
        handler.addFilter(repeats)
        self._logger.handlers[:] = [handler]
        self._logger.setLevel(self._level)
        self._logger.propagate = False

    def hide(self, secrets: Iterable[str]) -> None:
        """Redact these texts in every line from now on."""
        self._redactor.hide(secrets)

    def learn(self, secret: str) -> None:
        """Redact a secret that takes the place of an earlier one."""
        self._redactor.learn(secret)

    def raise_level(self, seconds: float = DEBUG_SECONDS) -> None:
        """Log everything, with repeated lines, for `seconds`; a second call restarts the time."""
        self._set_level("DEBUG", counting=False)
        log.info("log level raised to debug", extra={"seconds": seconds})
        self._timer = threading.Timer(seconds, self.restore_level)
        self._timer.daemon = True
        self._timer.start()

    def restore_level(self) -> None:
        """Restore the level of the start."""
        log.info("log level restored", extra={"level_name": self._level.lower()})
        self._set_level(self._level, counting=True)

    def close(self) -> None:
        """Log the outstanding counts; logging still works afterwards."""
        self._set_level(self._level, counting=True)
        self._repeats.flush()

    def _set_level(self, level: str, *, counting: bool) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        self._repeats.counting = counting
        self._logger.setLevel(level)


def extra_fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a record beside the standard ones."""
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD_FIELDS}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": time, "level": record.levelname.lower()}
        line |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(self._redactor.clean(line | extra_fields(record)))


class TextFormatter(logging.Formatter):
    """Formats a record as one text line, followed by its traceback, if any."""

    def __init__(self, redactor: Redactor, *, coloured: bool = False) -> None:
        super().__init__()
        self._redactor, self._coloured = redactor, coloured

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{key}={value}" for key, value in extra_fields(record).items())
        text = record.getMessage()
        text = visible(f"{text}  {fields}" if fields else text)
        line = f"{time} {self._level(record)} {text}"
        if record.exc_info:
            traceback = self._redactor.redact(self.formatException(record.exc_info))
            line += "\n" + visible_lines(traceback, TRACEBACK_INDENT)
        return self._redactor.redact(line)

    def _level(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname.lower():7}"
        colour = COLOURS.get(record.levelname) if self._coloured else None
        return f"\x1b[{colour}m{level}\x1b[0m" if colour else level
