"""The dashboard and the alerts: their metrics exist, and a dead broker is an alert in time."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from prometheus_client import generate_latest

from gateway.night.reconcile.report import metrics
from gateway.runtime.record.counters import LATENCY_BUCKETS
from gateway.trial.brokers.listening import free_port
from gateway.web.metrics import make_registry
from tests.brokers.mosquitto import StartMosquitto
from tests.waiting import PATIENCE
from tests.web.promtool import ALERTS, PROMTOOL, ROOT, SEARCH_PATH, map_seconds, promtool, rules
from tests.web.status_samples import HOLDER, FakeStatus, endpoint, route, status
from tests.web.test_run import get, running_gateway, within

PROMETHEUS_CONFIG: Final = ROOT / "deploy" / "prometheus.yaml"
DASHBOARDS: Final = sorted((ROOT / "deploy").glob("grafana-*.json"))
PROMETHEUS: Final = shutil.which("prometheus", path=SEARCH_PATH)
OTHER_EXPORTERS: Final = {  # of kube-state-metrics and of the node exporter, by their documents
    "kube_cronjob_created",
    "kube_cronjob_status_active",
    "kube_cronjob_status_last_schedule_time",
    "kube_cronjob_status_last_successful_time",
    "node_systemd_timer_last_trigger_seconds",
    "node_systemd_unit_state",
}
ALERT_TIMEOUT: Final = 180.0  # seconds until a killed broker is an alert
CONNECTION_LOSS_TIME: Final = 2.0  # seconds until the gateway detects a lost connection


def expressions() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each expression."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for dashboard in (json.loads(path.read_text()) for path in DASHBOARDS):
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["name"], variable["query"]["query"]


def families() -> set[str]:
    """Return the names of all series."""
    text = generate_latest(make_registry(FakeStatus(status(pair=HOLDER)).snapshot)).decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    histograms = {name for name, kind in kinds.items() if kind == "histogram"}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    return (kinds.keys() - histograms) | parts | metrics.FAMILIES.keys()


@pytest.mark.parametrize(("where", "text"), list(expressions()))
def test_every_metric_in_an_expression_exists(where: str, text: str) -> None:
    named = set(re.findall(r"\b((?:gateway|process|kube|node)_\w+)\b", text))

    assert named - families() - OTHER_EXPORTERS == set(), where
    assert named or 'up{job="gateway"}' in text


def test_most_metrics_are_on_the_dashboard_or_in_an_alert() -> None:
    """A metric on no panel and in no alert is listed here with its use."""
    shown = " ".join(text for _, text in expressions())
    gateway_metrics = {name for name in families() if name.startswith("gateway_")}
    unused = {name for name in gateway_metrics if not re.search(rf"\b{name}\b", shown)}

    assert unused == {
        "gateway_dead_letters_sent_again_total",  # on the page, beside those that are kept
        "gateway_endpoint_messages_total",  # for several routes that share an endpoint
        "gateway_endpoint_state_seconds",  # on the page
        "gateway_reload_time_seconds",  # for an annotation
        "gateway_route_delivery_seconds_count",
        "gateway_route_delivery_seconds_sum",
    }


def test_every_alert_has_its_paragraph() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    headings = set(re.findall(r"^### (Gateway\w+)$", text, re.MULTILINE))

    assert {rule["alert"] for rule in rules()} == headings


def test_every_alert_says_what_to_do_and_where_it_stands() -> None:
    for rule in rules():
        words = rule["annotations"]
        assert words.keys() == {"summary", "description", "runbook_url"}
        assert words["runbook_url"].endswith(f"/operations.html#{rule['alert'].lower()}")


def test_the_intervals_suit_a_shared_prometheus() -> None:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        assert map_seconds(group["interval"]) >= 30


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
@pytest.mark.parametrize(("kind", "file"), [("rules", ALERTS), ("config", PROMETHEUS_CONFIG)])
def test_prometheus_itself_finds_no_fault(kind: str, file: Path) -> None:
    promtool("check", kind, str(file))


def test_every_counter_of_an_alert_has_a_series_before_its_first_event() -> None:
    quiet = route(latencies=[0] * (len(LATENCY_BUCKETS) + 1), heartbeat_age=0.0)
    full = status(
        endpoints=(endpoint(backlog=0), endpoint("office", "sink")), routes=(quiet,), pair=HOLDER
    )
    text = generate_latest(make_registry(FakeStatus(full).snapshot)).decode()
    series = set(re.findall(r"^(\w+)[{ ]", text, re.MULTILINE))

    for rule in rules():
        named = set(re.findall(r"\bgateway_(?!reconcile)\w+", rule["expr"]))
        assert named - series == set(), rule["alert"]


@pytest.mark.nightly
@pytest.mark.broker
@pytest.mark.skipif(PROMETHEUS is None, reason="no Prometheus")
def test_a_killed_broker_is_an_alert_in_time(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with running_gateway(tmp_path, source, target) as (process, url):
        within(20, lambda: get(f"{url}/readyz")[0] == 200, process)
        config = tmp_path / "prometheus.yaml"
        text = PROMETHEUS_CONFIG.read_text().replace("127.0.0.1:8047", url.removeprefix("http://"))
        config.write_text(text.replace("prometheus-alerts.yaml", str(ALERTS)))
        address = f"127.0.0.1:{free_port()}"

        def firing() -> set[str]:
            _, text = get(f"http://{address}/api/v1/alerts")
            alerts = json.loads(text)["data"]["alerts"] if text.startswith("{") else []
            return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

        def scraped() -> bool:
            _, text = get(f"http://{address}/api/v1/query?query=gateway_endpoint_connected")
            return '"value":' in text

        watcher = subprocess.Popen(  # noqa: S603  # a program the machine has
            [str(PROMETHEUS), f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
             f"--web.listen-address={address}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            within(30, scraped, process)
            assert firing() == set()
            target.kill()
            within(ALERT_TIMEOUT, lambda: "GatewayEndpointDown" in firing(), process)
        finally:
            watcher.send_signal(signal.SIGTERM)
            watcher.wait(PATIENCE)
        assert process.end() == 0
