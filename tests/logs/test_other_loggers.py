"""Lines of other loggers, such as asyncio's, have the form of the gateway's own."""

from __future__ import annotations

import io
import json
import logging

import pytest

from gateway.logs.lines import set_up_logging


def test_a_line_of_asyncio_is_json_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    control = set_up_logging("info", "json", stream)
    control.hide(["s3cret-of-the-test"])
    other = logging.getLogger("asyncio")
    monkeypatch.setattr(other, "propagate", False)  # pytest's own handlers are above it

    other.error("Task exception was never retrieved: %s", "s3cret-of-the-test")
    other.info("not shown")
    control.close()

    (line,) = stream.getvalue().splitlines()
    shown = json.loads(line)
    assert (shown["level"], shown["logger"]) == ("error", "asyncio")
    assert shown["message"].startswith("Task exception was never retrieved: ")
    assert "s3cret" not in line
