"""The storages of lease and archive that a pair may have; a new one adds a function and a line.

The memory of its sources is beside the lease, and no instance reads the buffer of the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from gateway.config.load import load
from gateway.lease.file_store import FileLeaseStore
from gateway.lease.holder import LeaseHolder
from gateway.lease.kubernetes_store import KubernetesLeaseStore
from gateway.lease.lease import LeaseStore
from gateway.runtime.gateway import Gateway
from gateway.runtime.inbound.source_memories import SourceMemories
from tests.lease.kubernetes_api import lease_api
from tests.waiting import PATIENCE

LEASE: Final = 100.0  # seconds; nobody renews within a test
CONFIG: Final = """\
gateway: {{name: pair, instance: {instance}}}
endpoints:
  here: {{kind: memory, broker: "pair-{instance}"}}
routes:
  idle:
    from: {{endpoint: here, pattern: "a/{{rest...}}"}}
    to: {{endpoint: here, template: "b/{{rest...}}"}}
"""
ARCHIVE: Final = 'archive: {{path: "{url}", buffer: "{buffer}"}}\n'


@dataclass(frozen=True)
class PairStorage:
    """`open_lease` is called once by each instance; `archive` is the URL of a bucket, or ""."""

    open_lease: Callable[[], LeaseStore]
    archive: str = ""


class Instance:
    """A gateway of the pair that holds the lease, for the memories that it keeps. Mutable."""

    def __init__(self, storage: PairStorage, holder: LeaseHolder, folder: Path) -> None:
        name = holder.instance
        text = CONFIG.format(instance=name)
        if storage.archive:
            text += ARCHIVE.format(url=storage.archive, buffer=folder / name)
        file = folder / f"{name}.yaml"
        file.write_text(text)
        self.holder = holder
        self._gateway = Gateway(load(file), holder)
        self._gateway.start()

    @property
    def memories(self) -> SourceMemories:
        context = self._gateway._context  # noqa: SLF001  # no source of the test is its own
        assert context is not None
        assert context.memories is not None
        return context.memories

    def stop(self) -> None:
        """End it in good order, and give the lease away."""
        self._gateway.stop(PATIENCE)
        self.holder.give()


def _folder(_request: pytest.FixtureRequest, folder: Path) -> PairStorage:
    return PairStorage(partial(FileLeaseStore, folder / "lease"))


def _bucket(request: pytest.FixtureRequest, folder: Path) -> PairStorage:
    bucket = request.getfixturevalue("bucket")
    bucket.start()
    return PairStorage(partial(FileLeaseStore, folder / "lease"), bucket.url)


def _kubernetes(request: pytest.FixtureRequest, folder: Path) -> PairStorage:
    api = lease_api(folder)
    _, server = api.__enter__()
    request.addfinalizer(lambda: api.__exit__(None, None, None))
    return PairStorage(partial(KubernetesLeaseStore, server, "pair", LEASE))


STORAGES: Final[dict[str, Callable[[pytest.FixtureRequest, Path], PairStorage]]] = {
    "folder": _folder,
    "bucket": _bucket,
    "kubernetes": _kubernetes,
}
