"""Log lines: JSON for machines, one readable line for people; never a payload or a secret."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

FORMATS = ("auto", "text", "json")
_STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def set_up_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send the gateway's log to `stream` (standard error) in `form`, one of FORMATS."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    as_text = form == "text" or (form == "auto" and stream.isatty())
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    root = logging.getLogger("gateway")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line | _facts(record), default=str)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
        facts = " ".join(f"{key}={value}" for key, value in _facts(record).items())
        text = f"{time} {record.levelname.lower():7} {record.getMessage()}"
        if record.exc_info:
            facts += "\n" + self.formatException(record.exc_info)
        return f"{text}  {facts}" if facts else text
