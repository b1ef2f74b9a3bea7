"""How a command reaches a running gateway: its options, and the client that they describe."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gateway.cli.parsers import CommandParser
from gateway.config.process import DEFAULT_URL
from gateway.errors import WebError

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.config.process import WebSettings
    from gateway.web.client import StatusClient


def add_arguments(parser: CommandParser) -> None:
    text = "configuration of the running gateway, for its address and token"
    parser.add("CONFIG", text, nargs="?")
    parser.add("--url URL", "address of the running gateway", DEFAULT_URL)
    parser.add("--token-file FILE", "file with the token")
    parser.add("--ca-file FILE", "CA of the gateway's certificate (PEM)")
    parser.add("--cert-file FILE", "client certificate (PEM)")
    parser.add("--key-file FILE", "key of the client certificate (PEM)")


def client_of(args: argparse.Namespace) -> StatusClient:
    """The client for the arguments of `add_arguments`.

    Raises:
        ConfigErrors: the configuration has errors.
        WebError: it has no section `web` with a port, or a file cannot be used.
    """
    from gateway.web.client import ConnectionOptions, StatusClient  # `gateway run` does without

    url, token = args.url, ""
    if args.config is not None:
        url, token = _at(args.config, args.url)
    return StatusClient(
        ConnectionOptions(url, args.token_file, args.ca_file, args.cert_file, args.key_file, token)
    )


def _at(config: Path, url: str) -> tuple[str, str]:
    """Return the URL that `config` says, unless another one than the default was given; its token.

    Raises:
        WebError: it has no section `web` with a port.
    """
    from gateway.config.load import load_sections  # only with a configuration

    web: WebSettings | None = load_sections(config, "web").get("web")
    if url != DEFAULT_URL:
        return url, "" if web is None else web.token or ""
    if web is None or not web.port:
        what = "`web`" if web is None else "`web.port`"
        raise WebError(f"{config}: has no {what}; add it, or give the address with --url")
    return web.url, web.token or ""
