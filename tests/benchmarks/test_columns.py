"""Measured rows as a table."""

from __future__ import annotations

from benchmarks.columns import table


def test_rows_are_aligned_and_missing_values_are_empty() -> None:
    rows = [{"relay": "paho", "rate": 4_700}, {"relay": "gateway", "rate": 38_000.0, "x paho": 8.1}]

    assert table(rows).splitlines() == [
        "| relay   | rate   | x paho |",
        "| ------- | ------ | ------ |",
        "| paho    | 4,700  |        |",
        "| gateway | 38,000 | 8.1    |",
    ]
