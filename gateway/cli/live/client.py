"""What `gateway status` and `gateway top` share: how they reach the gateway."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.web.client import Client

URL: Final = "http://127.0.0.1:8047"  # where a section `web` listens by default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", default=URL, help=f"of the running gateway ({URL})")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="holds the token")
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="who signs the gateway (PEM)")
    parser.add_argument("--cert-file", type=Path, metavar="FILE", help="our certificate (PEM)")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="its key (PEM)")


def client_of(args: argparse.Namespace) -> Client:
    """The client that the arguments describe; its modules are loaded only now."""
    from gateway.web.client import Client, Way  # noqa: PLC0415  # `gateway run` needs none of it

    way = Way(args.url, args.token_file, args.ca_file, args.cert_file, args.key_file)
    return Client(way)
