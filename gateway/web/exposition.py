"""Families in the text format 0.0.4 of Prometheus.

The library's own writer asks of every label of every sample whether it is a legal name, which for
1,000 routes takes most of a second. Names here are ours or were checked with the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"  # which every Prometheus reads
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(registry: Collector) -> bytes:
    """Every family of `registry`, as `prometheus_client.generate_latest` writes it."""
    return "".join(part for metric in registry.collect() for part in _family(metric)).encode()


def _family(metric: Metric) -> Iterator[str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    doc = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {doc}\n# TYPE {name} {metric.type}\n"
    for sample in metric.samples:
        yield _line(sample)


def _line(sample: Sample) -> str:
    value: str = floatToGoString(sample.value)  # type: ignore[no-untyped-call]  # it has no types
    if not sample.labels:
        return f"{sample.name} {value}\n"
    labels = ",".join(
        f'{label}="{text.translate(_ESCAPES)}"' for label, text in sorted(sample.labels.items())
    )
    return f"{sample.name}{{{labels}}} {value}\n"
