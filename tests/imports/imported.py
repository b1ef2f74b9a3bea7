"""Helpers of the tests of imports: samples, and imported documents as configurations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from gateway.config.load import Configuration, load
from gateway.errors import GatewayError
from gateway.imports.document import Document, render
from gateway.imports.mosquitto.importer import import_mosquitto

T = TypeVar("T")
QUIET = "notifications false\n"  # of a connection without a state
SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> tuple[str, bytes]:
    return name, (SAMPLES / name).read_bytes()


def import_alone(file: str, data: bytes) -> Document:
    """Import a file of mosquitto whose `include_dir` cannot be read."""
    return import_mosquitto(file, data, _refuse)


def _refuse(folder: str) -> Sequence[tuple[str, bytes]]:
    raise GatewayError(f"{folder}: is not read here")


def loaded(document: Document, folder: Path, **environment: str) -> Configuration:
    """Load the text of the document, without secrets when no variables are given."""
    file = folder / "imported.yaml"
    file.write_text(render(document), encoding="utf-8")
    return load(file, environment, without_secrets=not environment)


def omitted(document: Document) -> list[str]:
    return [str(each) for each in document.omitted]


def settings_of(configuration: Configuration, name: str, kind: type[T]) -> T:
    settings: object = configuration.endpoints[name].settings
    assert isinstance(settings, kind)
    return settings
