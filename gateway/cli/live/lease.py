"""The lease of a pair, for the commands: the store that its configuration names, and its end."""

from __future__ import annotations

import logging
from pathlib import Path

from gateway.config.load import Configuration
from gateway.config.process import StandbySettings
from gateway.lease.file_store import FileLeaseStore
from gateway.lease.holder import LeaseHolder
from gateway.lease.lease import LeaseStore

log = logging.getLogger(__name__)


def open_lease(configuration: Configuration) -> LeaseHolder | None:
    """Return the holder of this instance's lease; None for a gateway alone.

    Raises:
        LeaseError: a lease of Kubernetes outside of a pod.
    """
    standby, gateway = configuration.standby, configuration.gateway
    if standby is None:
        return None
    return LeaseHolder(open_store(standby, gateway.name), gateway.instance, standby.seconds)


def open_store(standby: StandbySettings, gateway: str) -> LeaseStore:
    """Return the store of the lease of `gateway`.

    Raises:
        LeaseError: a lease of Kubernetes outside of a pod.
    """
    lease = standby.lease
    if lease.kind == "file":
        return FileLeaseStore(Path(lease.path or ""))
    from gateway.lease.kubernetes_store import (  # loads urllib.request
        ApiServer,
        KubernetesLeaseStore,
    )

    name, namespace = lease.name or gateway, lease.namespace or ""
    return KubernetesLeaseStore(ApiServer.of_pod(), name, standby.seconds, namespace)


def is_over(lease: LeaseHolder | None) -> bool:
    """Return whether the lease is lost, or somebody asked to give it away; log which."""
    if lease is None or (lease.holds() and not lease.wanted):
        return False
    if lease.holds():
        log.info("a handover was asked for", extra={"lease": lease.number})
    else:
        log.error("the lease is lost, and another instance may hold it: this one stops")
    return True
