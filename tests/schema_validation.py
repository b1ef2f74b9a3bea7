"""Checks against the schemas of configurations and of Kubernetes.

The libraries load here where a test runs: their formats take a second, in each worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from gateway.config.json_schema import json_schema


@cache
def configuration_validator() -> Any:  # noqa: ANN401  # its library is not loaded yet
    """The validator of a configuration, with the schema that editors get."""
    return validator(json_schema())


def validator(schema: Mapping[str, object]) -> Any:  # noqa: ANN401  # as above
    """Return a validator; the schema itself is checked.

    Raises:
        jsonschema.SchemaError: it is not a schema.
    """
    of_draft = import_module("jsonschema").Draft202012Validator
    of_draft.check_schema(schema)
    return of_draft(schema)


def check_manifest(manifest: Mapping[str, object], version: str) -> None:
    """Check an object of Kubernetes, without a field that the version does not know.

    Raises:
        AssertionError: it does not conform.
    """
    library = import_module("kubernetes_validate")
    try:
        library.validate(manifest, version, strict=True)
    except library.ValidationError as error:
        raise AssertionError(str(error)) from error
