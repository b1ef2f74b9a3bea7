"""The text of a Java exception: one line, without packages, parameters and log-ins."""

from __future__ import annotations

import pytest

jvm = pytest.importorskip("gateway.endpoints.jms.jvm")


class JMSException(Exception):  # noqa: N818  # named as the class of Java
    """A failure whose class JPype names with its package."""


JMSException.__name__ = "javax.jms.JMSException"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param(
            "javax.jms.JMSException: Could not connect to broker URL:"
            " tcp://localhost:61616?soTimeout=30000&wireFormat.maxFrameSize=133398528."
            " Reason: java.net.ConnectException: Connection refused (Connection refused)",
            "JMSException: Could not connect to broker URL: tcp://localhost:61616."
            " Reason: ConnectException: Connection refused (Connection refused)",
            id="url",
        ),
        pytest.param(
            "failover:(tcp://me:secret@a:1?x.y=1,tcp://b:2)?jms.password=secret is away",
            "JMSException: failover:(tcp://a:1,tcp://b:2) is away",
            id="log-in",
        ),
        pytest.param("is it there? yes=no", "JMSException: is it there? yes=no", id="question"),
    ],
)
def test_a_failure_is_described_in_one_short_line(given: str, shown: str) -> None:
    assert jvm.describe(JMSException(given)) == shown
