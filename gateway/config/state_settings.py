"""The section `state`: the state to publish, its brokers, and its name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from gateway.endpoints.base import Statement
from gateway.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSettings:
    """State of a connection, as a retained message at brokers of MQTT; one, or a list of them."""

    endpoint: tuple[str, ...] = setting("endpoints at whose brokers the message is retained")
    of: str = setting("endpoint whose connections it tells of")
    name: str = setting("name of the message, in the dialect of those endpoints")
    payload: Literal["flag", "json"] = setting(
        "`flag`: 1 or 0; `json`: an object with `gateway`, `endpoint` and `connected`",
        "flag",
    )

    def statement(self, gateway: str) -> Statement:
        """Return what the endpoints publish."""
        if self.payload == "flag":
            return Statement(self.name, b"1", b"0")
        up, down = (
            json.dumps({"gateway": gateway, "endpoint": self.of, "connected": connected}).encode()
            for connected in (True, False)
        )
        return Statement(self.name, up, down)
