"""The identity of a gateway: random digits, beside its journals or its spool.

    FOLDER/<writer>.identity     32 hexadecimal digits

Written: at the first start. Read: at each start, and by replays. The instances of a pair take the
digits of their lease, which both reach, and keep a copy for replays. A gateway without a folder has
another identity after each start. A lost identity costs a copy of the messages that are on their
way round, and loses none.
"""

from __future__ import annotations

import logging
import re
import secrets
from pathlib import Path
from typing import Final

from gateway.archive.durable import make_folders, read_regular, replace_text
from gateway.archive.layout import writer_name
from gateway.config.load import Configuration
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.memory_roles import state_folder

log = logging.getLogger(__name__)

_BYTES: Final = 16
_FORM: Final = re.compile(rb"[0-9a-f]{32}\n?")


def gateway_identity(configuration: Configuration, of_lease: str = "") -> GatewayIdentity:
    """Return the identity of a gateway that starts; `of_lease` is that of its pair."""
    name, folder = configuration.gateway.name, state_folder(configuration)
    if folder is None:
        return GatewayIdentity(name, of_lease or _new())
    path = folder / f"{writer_name(name)}.identity"
    known = _read(path)
    wanted = of_lease or known or _new()
    if wanted != known:
        try:
            make_folders(folder)
            replace_text(path, f"{wanted}\n")
        except OSError as error:
            log.warning(
                "%s: cannot be written: %s; after a restart a message on its way may come again",
                path,
                error.strerror,
            )
    return GatewayIdentity(name, wanted)


def _read(path: Path) -> str:
    try:
        found = read_regular(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        log.warning("%s: cannot be read: %s; the gateway takes another one", path, error.strerror)
        return ""
    if not _FORM.fullmatch(found):
        log.warning("%s: is damaged; the gateway takes another one", path)
        return ""
    return found.decode().strip()


def _new() -> str:
    return secrets.token_hex(_BYTES)
