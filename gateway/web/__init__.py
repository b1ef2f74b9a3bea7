"""The gateway's web server: status page, health probes, metrics and name lookup."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.runtime.gateway import Gateway
    from gateway.web.server import WebServer


def open_server(running: Gateway, config: str) -> WebServer | None:
    """Return a listening web server, or None without a section `web` in the configuration.

    `config` is the name of the configuration on the page. Requests are answered after `start`,
    which the caller calls once `running` has started.

    Raises:
        WebError: the address is in use, or a certificate cannot be used.
    """
    settings = running.configuration.web
    if settings is None:
        return None
    from gateway.web.application import WebApplication  # noqa: PLC0415  # only loaded with `web`
    from gateway.web.server import WebServer  # noqa: PLC0415
    from gateway.web.status_cache import StatusCache  # noqa: PLC0415

    cache = StatusCache(running, config, settings.spool_percent)
    mutual_tls = settings.client_ca_file is not None
    return WebServer(WebApplication(cache, settings.tokens, mutual_tls=mutual_tls), settings)
