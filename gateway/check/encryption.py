"""Find connections that others can read or impersonate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from gateway.config.load import Configuration
from gateway.config.section_checks import is_loopback
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import ConfigError
from gateway.setting import fields_by_key


def open_connections(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each unverified broker, and a note for each password in plain text."""
    for name, endpoint in configuration.endpoints.items():
        settings = endpoint.settings
        if getattr(getattr(settings, "tls", None), "verify", True) is False:
            location = configuration.location_of(("endpoints", name, "tls", "verify"))
            reason = f"endpoint {name!r}: anyone can pretend to be the broker"
            hint = "remove `verify: false`, and name the certificate authority in `ca_file`"
            yield location.error("tls-unverified", reason, hint, "warning")
        secrets = [
            key
            for key, field in fields_by_key(type(settings)).items()
            if field.metadata.get("secret") and getattr(settings, field.name) is not None
        ]
        if getattr(getattr(settings, "websocket", None), "headers", None):
            secrets.append("websocket")
        for key, host in product(secrets, plain_hosts(settings) if secrets else ()):
            location = configuration.location_of(("endpoints", name, key))
            what = "headers of `websocket` go" if key == "websocket" else f"{key} goes"
            reason = f"endpoint {name!r}: the {what} to {host!r} in plain text"
            hint = "use TLS, unless you alone control the network between"
            yield location.error("no-tls", reason, hint, "note")


def plain_hosts(settings: EndpointSettings) -> list[str]:
    """Return the hosts of other machines that are addressed without TLS, each once."""
    hosts = dict.fromkeys(each.host for each in settings.servers() if not each.is_encrypted)
    return [host for host in hosts if host and not is_loopback(host)]
