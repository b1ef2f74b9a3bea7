"""Connection arguments of `gateway status` and `gateway top`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.web.client import StatusClient

DEFAULT_URL: Final = "http://127.0.0.1:8047"  # the default address of a section `web`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", default=DEFAULT_URL, help=f"address of the running gateway ({DEFAULT_URL})"
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token")
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="CA of the gateway's certificate (PEM)"
    )
    parser.add_argument("--cert-file", type=Path, metavar="FILE", help="client certificate (PEM)")
    parser.add_argument(
        "--key-file", type=Path, metavar="FILE", help="key of the client certificate (PEM)"
    )


def client_of(args: argparse.Namespace) -> StatusClient:
    """The client for the arguments of `add_arguments`."""
    from gateway.web.client import ConnectionOptions, StatusClient  # noqa: PLC0415  # `gateway run` does without

    return StatusClient(
        ConnectionOptions(args.url, args.token_file, args.ca_file, args.cert_file, args.key_file)
    )
