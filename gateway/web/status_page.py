"""The status page as one HTML document, with its Content-Security-Policy."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from importlib.resources import files
from typing import Final

from gateway.dialects.registry import DIALECTS

STYLES: Final = ("page.css", "map.css")
SCRIPTS: Final = (  # one script, in this order: a file uses the classes and tables before it
    "text.js",
    "table.js",
    "trends.js",
    "map_layout.js",
    "map_model.js",
    "flow_map.js",
    "columns.js",
    "details.js",
    "status.js",
    "lookup.js",
    "start.js",
)


class StatusPage:
    """The HTML in UTF-8, and the policy that allows only its own style and script."""

    def __init__(self, *, needs_token: bool) -> None:
        folder = files("gateway.web") / "page"

        def joined(names: tuple[str, ...]) -> str:
            return "".join((folder / name).read_text("utf-8") for name in names)

        html, style, script = joined(("page.html",)), joined(STYLES), joined(SCRIPTS)
        options = "".join(f'<option value="{name}">{name}</option>' for name in DIALECTS)
        self.body = (
            html.replace("@systems", options)
            .replace("@token", "needed" if needs_token else "none")
            .replace("@style", style)
            .replace("@script", script)
            .encode()
        )
        self.policy = (
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
