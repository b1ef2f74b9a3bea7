"""A message that a user describes, as it arrives at the source of a route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.check.given_headers import given_headers, typed_values
from gateway.endpoints.settings.base import EndpointSettings
from gateway.model.message import Headers, Message, Value


@dataclass(frozen=True, slots=True)
class DescribedMessage:
    """The name of a message, and what is said of it: properties, payload and header `fields`.

    `properties` may have JMS headers.
    """

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    payload: str | None = None
    fields: Mapping[str, Value] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether it is more than a name."""
        return bool(self.properties or self.fields or self.payload is not None)

    def headers_at(self, settings: EndpointSettings) -> Headers:
        """Return the headers with which it arrives at a source.

        Raises:
            GatewayError: the value of a JMS header is illegal.
        """
        headers = given_headers(typed_values(self.properties, settings), settings)
        carried = {name: value for name, value in self.fields.items() if name in settings.carries}
        return replace(headers, **carried)  # type: ignore[arg-type]  # fields of `parse_headers`

    def at(self, settings: EndpointSettings) -> Message:
        """Return the message as it arrives at a source.

        Raises:
            GatewayError: the value of a JMS header is illegal.
        """
        payload = (self.payload or "").encode(errors="surrogateescape")
        return Message(self.name, payload, self.headers_at(settings))
