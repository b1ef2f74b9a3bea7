"""The echoes that a clean stop waits for, in a file beside the journals."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import msgpack

from gateway.archive.durable import read_regular, replacing
from gateway.archive.layout import journal_folder, writer_name
from gateway.runtime.delivery.echoes import SentCopy

log = logging.getLogger(__name__)


def save_echoes(root: Path, gateway: str, waiting: Sequence[SentCopy]) -> None:
    """Keep the copies whose echo has not come, at a stop that leaves no journal.

    Raises:
        OSError: the file cannot be written.
    """
    path = _echo_file(root, gateway)
    if waiting:
        with replacing(path) as file:
            file.write(msgpack.packb([[*key, origin] for key, origin in waiting]))


def saved_echoes(root: Path, gateway: str) -> list[SentCopy]:
    """Return what `save_echoes` kept, once."""
    path = _echo_file(root, gateway)
    try:
        saved = msgpack.unpackb(read_regular(path))
        return [((broker, name, digest), tuple(origin)) for broker, name, digest, origin in saved]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, msgpack.UnpackException) as error:
        log.warning("%s: %s; echoes of the last run may be sent on", path, error)
        return []
    finally:
        path.unlink(missing_ok=True)


def _echo_file(root: Path, gateway: str) -> Path:
    return journal_folder(root) / f"{writer_name(gateway)}.echoes"
