"""The settings of an endpoint as the text of a configuration file has them."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings


def written(settings: EndpointSettings, folder: Path, **more: object) -> str:
    """Return the mapping of an endpoint with these settings, on one line.

    Secrets go to files in `folder`; `more` are settings that every kind has, such as `broker_id`.
    """
    found: dict[str, object] = {"kind": find_kind(settings).name}
    for each in fields(settings):
        value, facts = getattr(settings, each.name), each.metadata
        if each.name == "name" or value == each.default:
            continue
        if facts.get("secret"):
            file = folder / f"{settings.name}-{each.name}"
            file.write_text(str(value))
            value = f"${{file:{file}}}"
        if is_dataclass(value) and not isinstance(value, type):
            value = {key: inner for key, inner in asdict(value).items() if inner is not None}
        found[facts.get("key", each.name)] = value
    return json.dumps(found | more)
