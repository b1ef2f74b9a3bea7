"""Sizes and durations with a unit, at every setting that is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args

import pytest
import yaml

from gateway.config.load import load
from gateway.config.schema import SECTIONS, CommonEndpointSettings
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.errors import ConfigErrors
from gateway.setting import fields_by_key, type_hints
from tests.schema_validation import configuration_validator

MEASURED = re.compile(r"\b(bytes|seconds|days|age|size|time|interval|wait|timeout|MiB|minute)\b")
CONFIG = """\
endpoints:
  a: {kind: mqtt, %s}
routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}
"""


def numbers() -> Iterator[tuple[str, str, str]]:
    """Return each number of all settings: its place, its unit, and its words."""
    left = [*SECTIONS.values(), CommonEndpointSettings]
    left += [kind.settings for kind in ENDPOINT_KINDS.values()]
    seen: set[type] = set()
    while left:
        kind = left.pop()
        if kind in seen:
            continue
        seen.add(kind)
        for key, field in fields_by_key(kind).items():
            hint = type_hints(kind)[field.name]
            inner = {hint, *get_args(hint)}
            left += [each for each in inner if is_dataclass(each) and isinstance(each, type)]
            if inner & {int, float} and "choices" not in field.metadata:
                words = f"{key.replace('_', ' ')}: {field.metadata['doc']}"
                yield f"{kind.__name__}.{key}", field.metadata.get("unit", ""), words


NUMBERS = sorted(numbers())


def test_the_walk_reaches_every_section() -> None:
    places = {place.partition(".")[0] for place, _, _ in NUMBERS}
    assert {"StandbySettings", "ArchiveSettings", "MqttSettings", "NameLimitSettings"} <= places


@pytest.mark.parametrize(("place", "unit", "words"), NUMBERS, ids=[each[0] for each in NUMBERS])
def test_a_number_with_a_unit_declares_it(place: str, unit: str, words: str) -> None:
    """A size or a duration without `unit=` would take no `64MiB` and no `1.5s`."""
    del place
    assert bool(unit) == bool(MEASURED.search(words)), words


def setting(folder: Path, text: str, key: str) -> object:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG % text)
    return getattr(load(file, {"SIZE": "8 MiB"}).endpoints["a"].settings, key)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_packet", "64MiB", 64 << 20),
        ("max_packet", "64 KiB", 64 << 10),
        ("max_packet", "1.5kB", 1_500),
        ("max_packet", "100B", 100),
        ("max_packet", '"${env:SIZE}"', 8 << 20),
        ("receive_window_bytes", "1.5GiB", 3 << 29),
        ("receive_window_bytes", "1GB", 10**9),
        ("connect_timeout", "1.5s", 1.5),
        ("connect_timeout", "250ms", 0.25),
        ("connect_timeout", "2min", 120.0),
        ("connect_timeout", "2m", 120.0),
        ("session_expiry", "7d", 604_800),
        ("session_expiry", "2h", 7_200),
        ("connect_timeout", "3", 3.0),
    ],
)
def test_a_unit(tmp_path: Path, key: str, text: str, value: float) -> None:
    assert setting(tmp_path, f"{key}: {text}", key) == value
    schema = configuration_validator()
    assert schema.is_valid(yaml.safe_load(CONFIG % f"{key}: {text}"))


def test_a_limit_in_a_minute(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    for text in ("600/minute", "600 /minute", "600"):
        whole = CONFIG % "qos: 1"
        file.write_text(whole.replace("template: y}", f"template: y}}, loop_limit: {text}"))
        (route,) = load(file).routes
        assert route.loop_limit == 600
        assert configuration_validator().is_valid(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("600/hour", "expected a rate such as 600/minute, not '600/hour'"),
        ("1.5/minute", "expected a whole number of messages a minute, not '1.5/minute'"),
        ("0/minute", "0 is outside 1.."),
    ],
)
def test_no_limit_in_a_minute(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.replace("template: y}", f"template: y}}, loop_limit: {text}") % "qos: 1")
    with pytest.raises(ConfigErrors) as caught:
        load(file)
    assert reason in str(caught.value)


def test_days(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    for text, days in (("7d", 7), ("48h", 2), ("30", 30)):
        file.write_text(CONFIG % "qos: 1" + f"archive: {{path: archive, keep_days: {text}}}\n")
        archive = load(file).archive
        assert archive is not None
        assert archive.keep_days == days


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("max_packet", "64MX", "expected a size such as 64MiB, not '64MX'"),
        ("max_packet", "1.5B", "expected a whole number of bytes, not '1.5B'"),
        pytest.param("connect_timeout", "1" * 400 + "d", "a duration such as 1.5s", id="long"),
        pytest.param("connect_timeout", "1" * 30 + "d", "outside 0.1..1000000000", id="large"),
        ("max_packet", "5s", "expected a size such as 64MiB, not '5s'"),
        ("max_packet", "many", "expected a size such as 64MiB, not 'many'"),
        ("connect_timeout", "5MiB", "expected a duration such as 1.5s, not '5MiB'"),
        ("connect_timeout", "-1s", "expected a duration such as 1.5s, not '-1s'"),
        ("keepalive", "1.5s", "expected a whole number of seconds, not '1.5s'"),
        ("keepalive", "1d", "86400 is outside 1..65535"),
        ("max_packet", "999999999999TiB", "has more than 64 bits"),
        ("qos", "1s", "expected a whole number, not '1s'"),
        ("port", "1s", "expected a whole number, not '1s'"),
    ],
)
def test_no_unit(tmp_path: Path, key: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        setting(tmp_path, f"{key}: {text}", key)
    assert reason in str(caught.value)
