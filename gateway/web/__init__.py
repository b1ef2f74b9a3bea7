"""The sidecar's page, probes and metrics over HTTP; it shows, and it changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.runtime.gateway import Gateway
    from gateway.web.server import WebServer


def open_page(running: Gateway, config: str) -> WebServer | None:
    """A server that listens and does not answer yet; None when `web` is not in the configuration.

    `config` is what the page calls the configuration. Call `start` once `running` has started.

    Raises:
        WebError: the address is taken, or a certificate cannot be used.
    """
    ref = running.configuration.web
    if ref is None:
        return None
    from gateway.web.observer import Observer  # noqa: PLC0415  # a run without a page needs none
    from gateway.web.server import WebServer  # noqa: PLC0415
    from gateway.web.site import Site  # noqa: PLC0415

    observer = Observer(running, config, ref.spool_percent)
    proven = ref.client_ca_file is not None
    return WebServer(Site(observer, ref.token, proven=proven), ref)
