"""The Helm chart: rendered by Helm's own library, and the source of the kustomize base."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("helm_python", reason="helm-python-sdk is not installed")

import helm_python

from deploy.manifests import BASE, CHART, base, rendered
from gateway.check.examine import examine
from gateway.config.load import load
from gateway.lease.kubernetes_store import ACCOUNT
from tests.deploy.test_kubernetes import HOSTS, SECRETS, VERSIONS
from tests.schema_validation import check_manifest

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "prometheus-alerts.yaml"
DEFAULTS: Mapping[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
MONITORS = {"podMonitor": True, "serviceMonitor": True, "rules": True}
DOCUMENTED: Mapping[str, Mapping[str, Any]] = {
    name: yaml.safe_load(text)
    for name, text in re.findall(
        r"^```yaml\n# values: ([^\n]+)\n(.*?)^```$",
        (ROOT / "docs" / "deployment.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
}
VARIANTS = [
    pytest.param({}, id="defaults"),
    pytest.param({"sidecar": {"native": False, "readinessPath": "/readyz"}}, id="plain-sidecar"),
    pytest.param({"replicas": 3, "divided": True, "storage": {"class": "fast"}}, id="replicas"),
    pytest.param({"settings": {"existing": "mine", "environmentFrom": "hosts"}}, id="own-settings"),
    pytest.param({"network": {"enabled": False}, "reconcile": {"enabled": False}}, id="less"),
    pytest.param(
        {
            "network": {
                "brokers": [{"ipBlock": {"cidr": "192.0.2.10/32"}}],
                "application": {
                    "ports": [8080, 8443],
                    "egress": [{"ports": [{"port": 5432, "protocol": "TCP"}]}],
                },
            }
        },
        id="application",
    ),
    *(pytest.param(values, id=name) for name, values in DOCUMENTED.items()),
]
*OLDER, NEWEST = VERSIONS
S3 = {"url": "s3://bucket/archive"}
REFUSED = [
    pytest.param({"replcias": 2}, "replcias", id="misspelled"),
    pytest.param({"replicas": "two"}, "replicas", id="no-number"),
    pytest.param({"sidecar": {"readinessPath": "/"}}, "readinessPath", id="no-probe"),
    pytest.param({"reconcile": {"keepDays": 0}}, "keepDays", id="no-day"),
    pytest.param({"network": {"brokerPorts": [70000]}}, "brokerPorts", id="no-port"),
    pytest.param({"storage": {"accessMode": "ReadWriteOncePod"}}, "accessMode", id="no-night"),
    pytest.param({"replicas": 2}, "each replica receives every message", id="undivided"),
    pytest.param({"standby": {"enabled": True}}, "the archive of a pair is one", id="two-archives"),
    pytest.param(
        {"standby": {"enabled": True}, "archive": S3, "settings": {"config": "gateway: {}"}},
        "the instances of a pair need names",
        id="no-instance",
    ),
    pytest.param(
        {"replicas": 2, "divided": True, "storage": {"shared": True}},
        "claims of their own",
        id="one-spool",
    ),
    pytest.param({"name": "My_App"}, "name", id="no-name"),
]
Manifest = Mapping[str, Any]


def manifests(values: Mapping[str, object], release: str = "app") -> Sequence[Manifest]:
    return _manifests(json.dumps(values), release)


@cache
def _manifests(values: str, release: str) -> Sequence[Manifest]:
    """Render a chart once for all tests of its values, which read it only."""
    texts = rendered(json.loads(values), release)
    return [
        each
        for name, text in texts.items()
        if name.endswith(".yaml")
        for each in yaml.load_all(text, yaml.CSafeLoader)  # the safe one, in C
        if each
    ]


def one(values: Mapping[str, object], kind: str, name: str = "app") -> Manifest:
    (found,) = (
        each
        for each in manifests(values)
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return found


def test_helm_finds_no_fault() -> None:
    messages = helm_python.lint(str(CHART))["messages"]

    assert [each for each in messages if "icon" not in each["error"]] == []


@pytest.mark.parametrize("name", base())
def test_the_base_of_kustomize_is_that_of_the_chart(name: str) -> None:
    assert (BASE / name).read_text() == base()[name], "outdated; run `make manifests`"


@pytest.mark.parametrize(
    "version", [*(pytest.param(each, marks=pytest.mark.nightly) for each in OLDER), NEWEST]
)
@pytest.mark.parametrize("values", VARIANTS)
def test_every_manifest_conforms_to_its_schema(values: Mapping[str, object], version: str) -> None:
    for manifest in manifests(values):
        if not manifest["apiVersion"].startswith("monitoring.coreos.com/"):  # no part of Kubernetes
            check_manifest(manifest, version)


@pytest.mark.parametrize(("values", "field"), REFUSED)
def test_a_wrong_value_is_refused_by_name(values: Mapping[str, object], field: str) -> None:
    with pytest.raises(helm_python.HelmError, match=field):
        rendered(values)


def test_every_value_is_in_the_schema() -> None:
    """The schema refuses unknown values, so that the defaults prove that it knows all."""
    values = copy.deepcopy(dict(DEFAULTS))

    assert rendered(values) == rendered({})


def test_the_default_configuration_passes_the_strict_check(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    text: str = one({}, "ConfigMap", "app-settings")["data"]["gateway.yaml"]
    file.write_text(text.replace("/run/secrets/gateway", str(tmp_path)))
    for name, content in SECRETS.items():
        (tmp_path / name).write_text(content)
    hosts: dict[str, str] = one({}, "ConfigMap", "app-hosts")["data"]

    findings = examine(load(file, HOSTS | hosts))

    assert [each.rule for each in findings if each.severity != "note"] == []


def test_a_changed_setting_restarts_the_pods() -> None:
    def checksum(values: Mapping[str, object]) -> str:
        template = one(values, "StatefulSet")["spec"]["template"]
        found: str = template["metadata"]["annotations"]["checksum/settings"]
        return found

    before = checksum({})
    assert checksum({"settings": {"config": "gateway: {}"}}) != before
    assert checksum({"settings": {"environment": {"FAR_HOST": "other"}}}) != before
    assert checksum({"storage": {"class": "fast"}}) == before


def test_each_replica_has_its_own_night() -> None:
    values = {"replicas": 2, "divided": True}
    jobs = [each for each in manifests(values) if each["kind"] == "CronJob"]
    pods = [each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in jobs]

    assert [each["metadata"]["name"] for each in jobs] == ["app-reconcile", "app-reconcile-1"]
    for index, spec in enumerate(pods):
        text = str(spec)
        assert f"'claimName': 'state-app-{index}'" in text
        assert f"'statefulset.kubernetes.io/pod-name': 'app-{index}'" in text


def test_the_policy_lets_the_traffic_of_the_application_pass() -> None:
    values = {"network": {"application": {"ports": [8080], "egress": [{"ports": [{"port": 53}]}]}}}
    spec = one(values, "NetworkPolicy")["spec"]

    assert {"ports": [{"port": 8080, "protocol": "TCP"}]} in spec["ingress"]
    assert {"ports": [{"port": 53}]} in spec["egress"]


@pytest.mark.parametrize(
    ("kind", "list_name"),
    [("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")],
)
def test_a_monitor_selects_the_pods_and_sends_the_token(kind: str, list_name: str) -> None:
    spec = one({"monitoring": MONITORS}, kind)["spec"]
    (endpoint,) = spec[list_name]

    assert spec["selector"] == one({}, "StatefulSet")["spec"]["selector"]
    assert endpoint["port"] == one({}, "Service")["spec"]["ports"][0]["name"]
    credentials = endpoint["authorization"]["credentials"]
    assert credentials == {"name": DEFAULTS["secret"], "key": "web-token"}
    assert {"targetLabel": "job", "replacement": "gateway"} in endpoint["relabelings"]


def test_the_rules_are_those_of_prometheus() -> None:
    spec = one({"monitoring": MONITORS}, "PrometheusRule")["spec"]

    assert spec == yaml.safe_load(ALERTS.read_text())
    there = {"monitoring": {**MONITORS, "documents": "https://docs.plant.example"}}
    for group in one(there, "PrometheusRule")["spec"]["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook_url"].startswith("https://docs.plant.example/")


def test_no_monitor_is_made_unless_it_is_asked_for() -> None:
    assert not {each["kind"] for each in manifests({})} & {
        "PodMonitor", "ServiceMonitor", "PrometheusRule",
    }  # fmt: skip


def gateway_of(values: Mapping[str, object]) -> tuple[Manifest, Manifest]:
    """Return the pod of the gateway, and its container."""
    spec: Manifest = one(values, "StatefulSet")["spec"]["template"]["spec"]
    (container,) = (
        each
        for each in [*spec.get("initContainers", []), *spec["containers"]]
        if each["name"] == "gateway"
    )
    return spec, container


def night_of(values: Mapping[str, object]) -> Manifest:
    job = one(values, "CronJob", "app-reconcile")["spec"]["jobTemplate"]
    found: Manifest = job["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("values", [{}, *DOCUMENTED.values()])
def test_two_releases_of_one_namespace_share_no_object(values: Mapping[str, object]) -> None:
    near, far = (
        {(each["kind"], each["metadata"]["name"]) for each in manifests(values, release)}
        for release in ("near", "far")
    )
    selectors = [
        one_of["spec"]["selector"]["matchLabels"]
        for release in ("near", "far")
        for one_of in manifests(values, release)
        if one_of["kind"] == "StatefulSet"
    ]

    assert near
    assert near & far == set()
    assert selectors[0] != selectors[1]


@pytest.mark.parametrize("values", [{}, {"monitoring": MONITORS}, *DOCUMENTED.values()])
def test_every_object_has_the_standard_labels(values: Mapping[str, object]) -> None:
    for manifest in manifests(values):
        labels = manifest["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "gateway"
        assert labels["app.kubernetes.io/instance"] == "app"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert {"app.kubernetes.io/version", "app.kubernetes.io/component", "helm.sh/chart"} <= (
            labels.keys()
        )


@pytest.mark.parametrize("values", [{}, *DOCUMENTED.values()])
def test_every_mount_has_its_volume(values: Mapping[str, object]) -> None:
    claims = one(values, "StatefulSet")["spec"].get("volumeClaimTemplates", [])
    for spec in (gateway_of(values)[0], night_of(values)):
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        mounted = {mount["name"] for each in containers for mount in each.get("volumeMounts", [])}
        volumes = {each["name"] for each in spec["volumes"]}

        assert mounted <= volumes | {each["metadata"]["name"] for each in claims}
        assert spec["automountServiceAccountToken"] is False


def test_a_bridge_has_no_other_container() -> None:
    spec, container = gateway_of(DOCUMENTED["a bridge alone"])

    assert "initContainers" not in spec
    assert spec["containers"] == [container]
    assert "restartPolicy" not in container


def test_an_archive_in_s3_has_its_account_credentials_and_way_out() -> None:
    values = DOCUMENTED["an archive in S3"]
    spec, container = gateway_of(values)
    night = night_of(values)
    (job,) = night["containers"]

    account = one(values, "ServiceAccount")["metadata"]
    assert account["annotations"] == values["serviceAccount"]["annotations"]
    assert spec["serviceAccountName"] == night["serviceAccountName"] == account["name"]
    for each in (container, job):
        assert {"name": "AWS_REGION", "value": "eu-central-1"} in each["env"]
        assert {"secretRef": {"name": "archive-credentials"}} in each["envFrom"]
    assert {"name": "ARCHIVE", "value": values["archive"]["url"]} in container["env"]
    assert f"archive='{values['archive']['url']}'" in job["args"][0]
    assert [each["name"] for each in night["volumes"]] == ["scratch"]
    assert "affinity" not in night
    for name in ("app", "app-reconcile"):
        egress = one(values, "NetworkPolicy", name)["spec"]["egress"]
        assert {"ports": [{"port": 443, "protocol": "TCP"}]} in egress


def test_the_libraries_of_a_vendor_are_mounted_for_the_gateway() -> None:
    spec, container = gateway_of(DOCUMENTED["JMS with a vendor's libraries"])
    copy_of, *_ = spec["initContainers"]

    assert {"name": "jars", "mountPath": "/opt/jars", "readOnly": True} in container["volumeMounts"]
    assert {"name": "jars", "mountPath": "/opt/jars"} in copy_of["volumeMounts"]


def test_probes_and_scrape_follow_the_certificate_of_the_page() -> None:
    values = {**DOCUMENTED["a page with TLS"]}
    _, container = gateway_of(values)
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    (endpoint,) = one(values, "PodMonitor")["spec"]["podMetricsEndpoints"]

    assert {each["scheme"] for each in probes} == {"HTTPS"}
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == values["monitoring"]["tlsConfig"]


def test_pods_are_placed_as_the_cluster_asks() -> None:
    values = DOCUMENTED["a cluster's rules"]
    wanted = values["pod"]
    for spec in (gateway_of(values)[0], night_of(values)):
        for key in ("imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName"):
            assert spec[key] == wanted[key]
    template = one(values, "StatefulSet")["spec"]["template"]["metadata"]
    assert template["annotations"].items() >= wanted["annotations"].items()
    assert template["labels"].items() >= wanted["labels"].items()


PAIRS = ["a pair with its archive in S3", "a pair with a shared volume"]


@pytest.mark.parametrize("values", [DOCUMENTED[name] for name in PAIRS], ids=PAIRS)
def test_a_pair_has_its_lease_and_two_nodes(values: Mapping[str, object]) -> None:
    spec, container = gateway_of(values)
    whole = one(values, "StatefulSet")["spec"]
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    lease = yaml.safe_load(one(values, "ConfigMap", "app-standby")["data"]["standby.yaml"])
    create, others = one(values, "Role", "app-lease")["rules"]
    (subject,) = one(values, "RoleBinding", "app-lease")["subjects"]

    assert whole["replicas"] == 2
    assert (whole["podManagementPolicy"], whole["updateStrategy"]) == (
        "Parallel",
        {"type": "RollingUpdate"},
    )
    assert term["labelSelector"] == whole["selector"]
    assert one(values, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert [*create["verbs"], *others["verbs"]] == ["create", "get", "update", "patch"]
    assert others["resourceNames"] == [lease["standby"]["lease"]["name"]]
    assert subject["name"] == spec["serviceAccountName"]
    assert [
        each["mountPath"] for each in container["volumeMounts"] if each["name"] == "account"
    ] == [str(ACCOUNT)]
    assert {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}]} in (
        one(values, "NetworkPolicy")["spec"]["egress"]
    )
    jobs = [each for each in manifests(values) if each["kind"] == "CronJob"]
    assert len(jobs) == 1  # the archive is one


def test_only_the_gateway_gets_the_account_of_a_pair() -> None:
    values = {**DOCUMENTED[PAIRS[0]], "application": DEFAULTS["application"]}
    spec, _ = gateway_of(values)

    assert [
        each["name"]
        for each in [*spec["initContainers"], *spec["containers"]]
        if "account" in str(each.get("volumeMounts"))
    ] == ["gateway"]


def test_a_shared_volume_is_one_claim_that_helm_keeps() -> None:
    values = DOCUMENTED["a pair with a shared volume"]
    claim = one(values, "PersistentVolumeClaim", "app-state")

    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    for spec in (gateway_of(values)[0], night_of(values)):
        assert {
            "name": "state",
            "persistentVolumeClaim": {"claimName": "app-state"},
        } in spec["volumes"]
    assert "affinity" not in night_of(values)


def test_a_claim_of_one_node_keeps_the_night_there() -> None:
    values = {"storage": {"existing": "mine", "accessMode": "ReadWriteOnce"}}

    assert "affinity" in night_of(values)
    assert "volumeClaimTemplates" not in one(values, "StatefulSet")["spec"]


@pytest.mark.parametrize("archive", [{}, S3], ids=["folder", "s3"])
def test_the_configuration_of_a_pair_passes_the_check(
    archive: Mapping[str, str], tmp_path: Path
) -> None:
    values = {"standby": {"enabled": True}, "archive": archive, "storage": {"shared": True}}
    settings = tmp_path / "settings"
    settings.mkdir()
    for name in ("app-settings", "app-standby"):
        for key, text in one(values, "ConfigMap", name)["data"].items():
            (settings / key).write_text(text.replace("/run/secrets/gateway", str(tmp_path)))
    for name, content in SECRETS.items():
        (tmp_path / name).write_text(content)
    _, container = gateway_of(values)
    given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    hosts: dict[str, str] = one(values, "ConfigMap", "app-hosts")["data"]

    configuration = load(settings, HOSTS | hosts | given)
    findings = {each.rule for each in examine(configuration) if each.severity != "note"}

    assert configuration.gateway.instance == HOSTS["POD_NAME"]
    assert configuration.standby is not None
    assert configuration.standby.lease.name == "app"
    assert findings == (set() if archive else {"pair-archive"})  # a folder may be on one node
