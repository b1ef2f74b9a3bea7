"""Helpers of the tests of imports: samples, and imported documents as configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

from gateway.config.load import Configuration, load
from gateway.endpoints.kind import EndpointKind
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.endpoints.settings.jms import JmsSettings
from gateway.imports.document import Document, render

T = TypeVar("T")
SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> tuple[str, bytes]:
    return name, (SAMPLES / name).read_bytes()


def loaded(
    document: Document, folder: Path, patch: pytest.MonkeyPatch, **environment: str
) -> Configuration:
    """Load the text of the document, without secrets when no variables are given.

    The JMS kind is registered even without its row.
    """
    patch.setitem(
        ENDPOINT_KINDS, "jms", EndpointKind("jms", JmsSettings, "gateway.endpoints.jms", "jms")
    )
    file = folder / "imported.yaml"
    file.write_text(render(document), encoding="utf-8")
    return load(file, environment, without_secrets=not environment)


def omitted(document: Document) -> list[str]:
    return [str(each) for each in document.omitted]


def settings_of(configuration: Configuration, name: str, kind: type[T]) -> T:
    settings: object = configuration.endpoints[name].settings
    assert isinstance(settings, kind)
    return settings
