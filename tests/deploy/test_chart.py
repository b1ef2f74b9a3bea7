"""The Helm chart: rendered by Helm's own library, and the source of the kustomize base."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("helm_python", reason="helm-python-sdk is not installed")

import helm_python
import kubernetes_validate

from deploy.manifests import BASE, CHART, base, rendered
from gateway.check.examine import examine
from gateway.config.load import load
from tests.deploy.test_kubernetes import HOSTS, SECRETS, VERSIONS

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus-alerts.yaml"
DEFAULTS: Mapping[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
MONITORS = {"podMonitor": True, "serviceMonitor": True, "rules": True}
VARIANTS = [
    pytest.param({}, id="defaults"),
    pytest.param({"sidecar": {"native": False, "readinessPath": "/readyz"}}, id="plain-sidecar"),
    pytest.param({"replicas": 3, "storage": {"class": "fast"}}, id="replicas"),
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
]
REFUSED = [
    pytest.param({"replcias": 2}, "replcias", id="misspelled"),
    pytest.param({"replicas": "two"}, "replicas", id="no-number"),
    pytest.param({"sidecar": {"readinessPath": "/"}}, "readinessPath", id="no-probe"),
    pytest.param({"reconcile": {"keepDays": 0}}, "keepDays", id="no-day"),
    pytest.param({"network": {"brokerPorts": [70000]}}, "brokerPorts", id="no-port"),
    pytest.param({"application": {"containers": []}}, "containers", id="no-application"),
    pytest.param({"name": "My_App"}, "name", id="no-name"),
]
Manifest = Mapping[str, Any]


def manifests(values: Mapping[str, object]) -> list[Manifest]:
    texts = [text for name, text in rendered(values).items() if name.endswith(".yaml")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", VARIANTS)
def test_every_manifest_conforms_to_its_schema(values: Mapping[str, object], version: str) -> None:
    for manifest in manifests(values):
        kubernetes_validate.validate(manifest, version, strict=True)


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
    text: str = one({}, "ConfigMap", "gateway-settings")["data"]["gateway.yaml"]
    file.write_text(text.replace("/run/secrets/gateway", str(tmp_path)))
    for name, content in SECRETS.items():
        (tmp_path / name).write_text(content)
    hosts: dict[str, str] = one({}, "ConfigMap", "gateway-hosts")["data"]

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
    jobs = [each for each in manifests({"replicas": 2}) if each["kind"] == "CronJob"]
    pods = [each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in jobs]

    assert [each["metadata"]["name"] for each in jobs] == ["reconcile", "reconcile-1"]
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


def test_no_monitor_is_made_unless_it_is_asked_for() -> None:
    assert not {each["kind"] for each in manifests({})} & {
        "PodMonitor", "ServiceMonitor", "PrometheusRule",
    }  # fmt: skip
