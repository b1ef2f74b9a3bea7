"""Texts of errors: the first line, and the lost connection after an unexpected error."""

from __future__ import annotations

import pytest

from gateway.errors import first_line, unexpected_error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        pytest.param(ValueError("one"), "one", id="one-line"),
        pytest.param(ValueError("one\ntwo"), "one", id="two-lines"),
        pytest.param(TimeoutError(), "TimeoutError", id="no-text"),
        pytest.param(ValueError("\ntwo"), "ValueError", id="empty-line"),
    ],
)
def test_the_first_line_of_an_error_is_never_empty(error: Exception, line: str) -> None:
    assert first_line(error) == line


def test_an_unexpected_error_is_a_lost_connection_that_is_retried() -> None:
    error = unexpected_error("plant", KeyError("x"))

    assert error.retryable
    assert str(error) == "plant: KeyError: 'x'"
