"""A message is restored whole from its row, and its payload as the route archives it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.load import load
from gateway.errors import ArchiveError
from gateway.model.message import (
    Headers,
    Message,
    Value,
)
from gateway.night.replay.restored_message import restore
from gateway.routing.router import Router
from gateway.runtime.delivery.rows import (
    FULL_SIZE,
    REDACTED,
    BatchOrigin,
    header_map,
    payload_bytes,
)
from tests.archive.samples import NOON
from tests.night.replay.replay_rig import ReplayRig
from tests.runtime.received_batches import received_batch

VALUES = (
    st.text() | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.binary() | st.none()
)


@given(
    st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
    st.none() | st.binary(max_size=5) | st.text(max_size=5),
    st.binary(max_size=5) | st.text(max_size=5),
)
def test_a_message_is_restored_from_its_row(
    properties: dict[str, str | int | float | bool | bytes | None],
    correlation: bytes | str | None,
    payload: bytes | str,
) -> None:
    headers = Headers(redelivered=True, correlation_id=correlation, properties=properties)
    message = Message("a/b", payload, headers)

    row = {
        "name": "a/b", "payload": payload_bytes(payload), "mode": 0, "origin_id": None,
        "headers": list(header_map(message).items()), "source_time": None,
    }  # fmt: skip
    assert restore(row) == message


@pytest.mark.parametrize(
    "depth", [pytest.param(1, id="flat"), pytest.param(600, id="past-200-levels")]
)
def test_nested_properties_with_infinities_are_restored(depth: int) -> None:
    value: Value = {"a'b": [math.inf, -math.inf, -1.5, "]\\", (1,), b"\x00\"'", None, True, {}, []]}
    for _ in range(depth):
        value = [value]
    message = Message(
        "a/b", b"", Headers(redelivered=True, properties={"p": value, "q": [math.nan]})
    )

    row = {
        "name": "a/b", "payload": b"", "mode": 0, "origin_id": None,
        "headers": list(header_map(message).items()), "source_time": None,
    }  # fmt: skip
    restored = restore(row).headers.properties
    assert restored["p"] == value
    assert repr(restored["q"]) == "[nan]"


def test_damaged_content_is_an_error() -> None:
    row = {
        "name": "a", "payload": b"\xc1", "mode": 0, "origin_id": None, "source_time": None,
        "headers": [("payload_kind", "dict")],
    }  # fmt: skip
    with pytest.raises(ArchiveError, match="damaged content"):
        restore(row)


@pytest.mark.parametrize(
    ("maximum", "redact", "payload", "headers"),
    [
        pytest.param(None, (), b"12345", {"property.card": "1"}, id="whole"),
        pytest.param(5, (), b"12345", {"property.card": "1"}, id="just-fits"),
        pytest.param(2, (), b"12", {"property.card": "1", FULL_SIZE: "5"}, id="cut"),
        pytest.param(0, (), b"", {"property.card": "1", FULL_SIZE: "5"}, id="cut-to-nothing"),
        pytest.param(None, ("card",), b"12345", {"property.card": REDACTED}, id="redacted"),
        pytest.param(None, ("ca*",), b"12345", {"property.card": REDACTED}, id="by-pattern"),
        pytest.param(None, ("car",), b"12345", {"property.card": "1"}, id="another-name"),
        pytest.param(None, ("reply_to",), b"12345", {"property.card": "1"}, id="absent"),
    ],
)
def test_the_archive_cuts_and_redacts_as_the_route_says(
    tmp_path: Path,
    maximum: int | None,
    redact: tuple[str, ...],
    payload: bytes,
    headers: dict[str, str],
) -> None:
    rig = ReplayRig(tmp_path)
    (route,) = load(rig.file).routes
    changed = replace(route, archive_payload_bytes=maximum, archive_redact=redact)
    message = Message("orders/1", b"12345", Headers(properties={"card": "1"}))
    record = received_batch([message], BatchOrigin("plant", "mqtt", NOON))

    rows = record.received_rows([0], Router(route.dialect, [changed])["orders/1"])

    assert rows.columns["payload"] == [payload]
    assert rows.columns["headers"] == [headers | {"payload_kind": "bytes"}]
    assert rows.columns["size"] == [5]
