"""The rendered manifests: schemas, hardening and the gateway's configuration."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.check.examine import examine
from gateway.config.load import load
from tests.schema_validation import check_manifest

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = ["production", "trial"]
VERSIONS = ["1.29", "1.33", "1.37"]  # native sidecars exist since 1.29, and are stable since 1.33
SECRETS = {"far-password": "hunter2", "web-token": "0123456789abcdef", "ca.pem": ""}
HOSTS = {"POD_NAME": "app-0", "NEAR_HOST": "mosquitto", "FAR_HOST": "broker.example.com"}
Manifest = Mapping[str, Any]


@cache
def manifests(overlay: str) -> tuple[Manifest, ...]:
    if (program := shutil.which("kustomize")) is not None:
        command = [program, "build"]
    elif (program := shutil.which("kubectl")) is not None:
        command = [program, "kustomize"]
    else:
        pytest.skip("neither kustomize nor kubectl is installed")
    done = subprocess.run(  # noqa: S603
        [*command, str(FOLDER / "overlays" / overlay)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def one(overlay: str, kind: str, name: str) -> Manifest:
    (found,) = (
        each
        for each in manifests(overlay)
        if each["kind"] == kind and each["metadata"]["name"].startswith(name)
    )
    return found


def pod(overlay: str, kind: str, name: str) -> Manifest:
    spec: Manifest = one(overlay, kind, name)["spec"]
    if kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: Manifest = spec["template"]["spec"]
    return found


def pods(overlay: str) -> Iterator[Manifest]:
    yield pod(overlay, "StatefulSet", "app")
    yield pod(overlay, "CronJob", "app-reconcile")
    if overlay == "trial":
        yield pod(overlay, "Deployment", "mosquitto")


def containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_conforms_to_its_schema(overlay: str, version: str) -> None:
    for manifest in manifests(overlay):
        check_manifest(manifest, version)


def test_the_schemas_detect_a_mistake() -> None:
    (sidecar, *_) = pod("trial", "StatefulSet", "app")["initContainers"]
    wrong = {**one("trial", "StatefulSet", "app")}
    wrong["spec"] = {
        **wrong["spec"],
        "template": {"spec": {"containers": [{**sidecar, "prot": 1}]}},
    }

    with pytest.raises(AssertionError, match="prot"):
        check_manifest(wrong, VERSIONS[0])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_conforms_to_the_restricted_standard(overlay: str) -> None:
    for spec in pods(overlay):
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for container in containers(spec):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_gateway_is_a_native_sidecar_with_probes(overlay: str) -> None:
    spec = pod(overlay, "StatefulSet", "app")
    (sidecar,) = spec["initContainers"]
    probes = {name: sidecar[f"{name}Probe"]["httpGet"] for name in PROBES}

    assert sidecar["restartPolicy"] == "Always"
    assert {name: probe["path"] for name, probe in probes.items()} == PROBES
    assert {probe["port"] for probe in probes.values()} == {"web"}
    watched = {after for word, after in pairwise(sidecar["args"]) if word == "--watch"}
    settings = {mount["mountPath"] for mount in sidecar["volumeMounts"] if "readOnly" in mount}
    assert watched == settings  # a replaced config map or secret needs no restart
    assert sidecar["ports"] == [{"name": "web", "containerPort": 8047}]
    written = {mount["mountPath"] for mount in sidecar["volumeMounts"] if "readOnly" not in mount}
    assert written == {"/var/lib/gateway", "/tmp"}  # noqa: S108  # a mount


# An outage of a broker must neither restart the pod nor hold back a rollout.
PROBES = {"startup": "/healthz", "liveness": "/healthz", "readiness": "/healthz"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_grace_period_is_longer_than_a_stop(overlay: str, tmp_path: Path) -> None:
    configuration = load(settings(overlay, tmp_path), environment(overlay))
    spec = pod(overlay, "StatefulSet", "app")

    assert spec["terminationGracePeriodSeconds"] > configuration.gateway.stop_seconds + 10


def settings(overlay: str, folder: Path) -> Path:
    """Write the sidecar's configuration, with its secrets in a folder of the test."""
    (text,) = one(overlay, "ConfigMap", "gateway-settings")["data"].values()
    file = folder / "gateway.yaml"
    file.write_text(text.replace("/run/secrets/gateway", str(folder)))
    for name, content in SECRETS.items():
        (folder / name).write_text(content)
    return file


def environment(overlay: str) -> dict[str, str]:
    hosts: dict[str, str] = one(overlay, "ConfigMap", "gateway-hosts")["data"]
    assert hosts.keys() <= HOSTS.keys()
    return HOSTS | hosts


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_configuration_passes_the_strict_check(overlay: str, tmp_path: Path) -> None:
    findings = examine(load(settings(overlay, tmp_path), environment(overlay)))

    assert [each.rule for each in findings if each.severity != "note"] == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_reference_exists(overlay: str) -> None:
    names = {(each["kind"], each["metadata"]["name"]) for each in manifests(overlay)}
    for spec in pods(overlay):
        for volume in spec.get("volumes", []):
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in names
            if "secret" in volume and overlay == "trial":
                assert ("Secret", volume["secret"]["secretName"]) in names
        mounts = {
            mount["name"] for each in containers(spec) for mount in each.get("volumeMounts", [])
        }
        claims = {
            claim["metadata"]["name"]
            for claim in one(overlay, "StatefulSet", "app")["spec"]["volumeClaimTemplates"]
        }
        assert mounts <= {volume["name"] for volume in spec.get("volumes", [])} | claims


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_reconciliation_job_mounts_the_archive_of_the_gateway(overlay: str) -> None:
    spec = pod(overlay, "CronJob", "app-reconcile")
    (volume,) = (each for each in spec["volumes"] if each["name"] == "state")
    term = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    application = one(overlay, "StatefulSet", "app")["spec"]

    assert volume["persistentVolumeClaim"]["claimName"] == "state-app-0"
    assert term["labelSelector"]["matchLabels"] == {"statefulset.kubernetes.io/pod-name": "app-0"}
    assert application["template"]["metadata"]["labels"] == application["selector"]["matchLabels"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_gateway_and_job_keep_the_same_days(overlay: str, tmp_path: Path) -> None:
    configuration = load(settings(overlay, tmp_path), environment(overlay))
    (job,) = pod(overlay, "CronJob", "app-reconcile")["containers"]

    assert configuration.archive is not None
    days = configuration.archive.keep_days
    assert days is not None
    assert f'archive compact "$archive" --keep-days {days};' in job["args"][0]


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize(
    ("proven", "compacted", "status"), [(0, 0, 0), (1, 0, 1), (2, 1, 2), (3, 0, 3), (0, 1, 1)]
)
def test_the_job_runs_the_next_night_and_writes_its_metrics(
    overlay: str, proven: int, compacted: int, status: int, tmp_path: Path
) -> None:
    (job,) = pod(overlay, "CronJob", "app-reconcile")["containers"]
    program = tmp_path / "gateway"
    cases = f"reconcile) exit {proven};; *) exit {compacted};;"
    program.write_text(f'#!/bin/sh\necho "$*"\ncase $1 in {cases} esac\n')
    program.chmod(0o755)
    done = subprocess.run(  # noqa: S603  # the script of the job
        [*job["command"], *job["args"]], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )  # fmt: skip

    night, compaction = done.stdout.splitlines()
    assert night == "reconcile /var/lib/gateway/archive --metrics /var/lib/gateway/reconcile.prom"
    assert compaction.startswith("archive compact /var/lib/gateway/archive --keep-days ")
    assert done.returncode == status


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy"])
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_policies_select_the_application(overlay: str, kind: str) -> None:
    (policy,) = (
        each["spec"]
        for each in manifests(overlay)
        if (each["kind"], each["metadata"]["name"]) == (kind, "app")
    )
    labels = one(overlay, "StatefulSet", "app")["spec"]["selector"]

    assert policy.get("podSelector", policy.get("selector")) == labels


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_images_have_a_version(overlay: str) -> None:
    images = {each["image"] for spec in pods(overlay) for each in containers(spec)}

    assert all(":" in image and not image.endswith(":latest") for image in images), images
