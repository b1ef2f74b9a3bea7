"""The dashboard and the alerts: their metrics exist, and a dead broker is an alert in time."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client import generate_latest

from gateway.reconcile.report import metrics
from gateway.runtime.record.counters import LATENCY_BUCKETS
from gateway.web.metrics import make_registry
from tests.brokers.mosquitto import StartMosquitto, free_port
from tests.waiting import PATIENCE
from tests.web.status_samples import HOLDER, FakeStatus, route, status
from tests.web.test_run import get, running_gateway, within

ROOT: Final = Path(__file__).parents[2]
ALERTS: Final = ROOT / "deploy" / "prometheus-alerts.yaml"
PROMETHEUS_CONFIG: Final = ROOT / "deploy" / "prometheus.yaml"
DASHBOARDS: Final = sorted((ROOT / "deploy").glob("grafana-*.json"))
SEARCH_PATH: Final = os.pathsep.join((os.environ.get("PATH", os.defpath), sys.prefix + "/bin"))
PROMETHEUS: Final = shutil.which("prometheus", path=SEARCH_PATH)
PROMTOOL: Final = shutil.which("promtool", path=SEARCH_PATH)
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


def rules() -> list[dict[str, Any]]:
    return [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]


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


def map_seconds(text: str) -> float:
    return float(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


RESTART: Final = """\
rule_files: [{rules}]
evaluation_interval: 30s
tests:
  - name: a gateway that restarts within a minute
    interval: 15s
    input_series:
      - {{series: 'up{{I}}', values: "1x8 0x3 1x20"}}
      - {{series: 'gateway_endpoint_connected{{I}}', values: "1x8 stale _x2 0x3 1x20"}}
      - {{series: 'gateway_ready{{I}}', values: "1x8 stale _x2 0x3 1x20"}}
      - {{series: 'gateway_lease_held{{I, gateway="g"}}', values: "1x8 stale _x2 0x20"}}
      - {{series: 'gateway_lease_held{{J, gateway="g"}}', values: "0x8 1x24"}}
      - {{series: 'gateway_lease_standbys{{J, gateway="g"}}', values: "0x32"}}
      - {{series: 'gateway_start_time_seconds{{I}}', values: "-9000x8 stale _x2 165x24"}}
      - {{series: 'gateway_archive_failed_conversions_total{{I}}', values: "0x8 stale _x2 0x24"}}
    promql_expr_test: [{cases}]
"""


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_a_restart_pages_nobody(tmp_path: Path) -> None:
    critical = 'count(ALERTS{severity="critical", alertstate="firing"}) or vector(0)'
    cases = ", ".join(
        f"{{expr: '{critical}', eval_time: {at}s, exp_samples: [{{labels: '{{}}', value: 0}}]}}"
        for at in range(0, 480, 30)
    )
    text = RESTART.format(rules=ALERTS, cases=cases)
    file = tmp_path / "test.yaml"
    file.write_text(text.replace("{I", f"{{{LABELS}").replace("{J", '{job="gateway", instance="b"'))

    promtool("test", "rules", str(file))


def test_the_times_of_the_alert_for_a_broker_add_up() -> None:
    group, _ = yaml.safe_load(ALERTS.read_text())["groups"]
    scrape = yaml.safe_load(PROMETHEUS_CONFIG.read_text())["global"]["scrape_interval"]
    (rule,) = [each for each in group["rules"] if each["alert"] == "GatewayEndpointDown"]
    times = [map_seconds(text) for text in (scrape, group["interval"], rule["for"])]

    assert CONNECTION_LOSS_TIME + sum(times) <= ALERT_TIMEOUT


def promtool(*arguments: str) -> None:
    """Run the checker of Prometheus, and expect that it finds no fault."""
    done = subprocess.run(  # noqa: S603  # a program the machine has
        [str(PROMTOOL), *arguments],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def write_test(file: Path, text: str) -> None:
    """Write a test of promtool, with the annotations that every alert of the rules has."""
    world = yaml.safe_load(text)
    common = {
        each["alert"]: {k: v for k, v in each["annotations"].items() if k != "summary"}
        for each in rules()
    }
    for test in world["tests"]:
        for case in test["alert_rule_test"]:
            for alert in case["exp_alerts"]:
                alert["exp_annotations"] |= common[case["alertname"]]
    file.write_text(yaml.safe_dump(world))


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
@pytest.mark.parametrize(("kind", "file"), [("rules", ALERTS), ("config", PROMETHEUS_CONFIG)])
def test_prometheus_itself_finds_no_fault(kind: str, file: Path) -> None:
    promtool("check", kind, str(file))


SERIES: Final = '{job="gateway", instance="a", endpoint="b", side="sink"}'
RULE_TEST: Final = """\
rule_files: [{rules}]
evaluation_interval: 30s
tests:
  - interval: 15s
    input_series:
      - series: 'gateway_endpoint_connected{series}'
        values: "1 1 0x20"
    alert_rule_test:
      - {{eval_time: 120s, alertname: GatewayEndpointDown, exp_alerts: []}}
      - eval_time: {late}s
        alertname: GatewayEndpointDown
        exp_alerts:
          - exp_labels:
              {{job: gateway, instance: a, endpoint: b, side: sink, severity: critical}}
            exp_annotations:
              summary: "a: endpoint b (sink) is not connected"
"""


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_the_alert_fires_in_time_by_the_clock_of_prometheus(tmp_path: Path) -> None:
    """The worst case: the broker dies after the scrape at 15 s; the next scrape is at 30 s."""
    late = 15 + ALERT_TIMEOUT - CONNECTION_LOSS_TIME
    file = tmp_path / "test.yaml"
    write_test(file, RULE_TEST.format(rules=ALERTS, series=SERIES, late=int(late)))

    promtool("test", "rules", str(file))


def test_every_counter_of_an_alert_has_a_series_before_its_first_event() -> None:
    quiet = route(latency=[0] * (len(LATENCY_BUCKETS) + 1), heartbeat_age=0.0)
    full = status(routes=(quiet,), pair=HOLDER)
    text = generate_latest(make_registry(FakeStatus(full).snapshot)).decode()
    series = set(re.findall(r"^(\w+)[{ ]", text, re.MULTILINE))

    for rule in rules():
        named = set(re.findall(r"\bgateway_(?!reconcile)\w+", rule["expr"]))
        assert named - series == set(), rule["alert"]


ABSENT: Final = "_x12 "  # one minute without a series
EXPIRY: Final = 'gateway_certificate_expiry_time_seconds{I, setting="web.cert_file"}'
BEGINNINGS: Final = [  # the alert, a series that begins with the second minute, and its values
    ("GatewayEndpointDown", 'gateway_endpoint_connected{I, endpoint="b"}', "0x24"),
    ("GatewayTwoHolders", 'gateway_lease_held{I, gateway="g"}', "2x24"),
    ("GatewayNoHolder", 'gateway_lease_held{I, gateway="g"}', "0x24"),
    ("GatewayLeaseUnreachable", 'gateway_lease_reachable{I, gateway="g"}', "0x24"),
    ("GatewayNoStandby", 'gateway_lease_standbys{I, gateway="g"}', "0x90"),
    ("GatewayHeartbeatMissing", 'gateway_route_heartbeat_age_seconds{I, route="r"}', "60x24"),
    ("GatewayNotReady", "gateway_ready{I}", "0x90"),
    ("GatewayReloadRefused", "gateway_reload_successful{I}", "0x24"),
    ("GatewayCertificateExpiring", EXPIRY, "604800x24"),
    ("GatewayConversionFailing", "gateway_archive_failed_conversions_total{I}", "0 7x23"),
    ("GatewayConversionFailing", "gateway_archive_failed_conversions_total{I}", "7x24"),
    ("GatewayArchiveBufferFilling", "gateway_archive_buffer_used_ratio{I}", "0.9x24"),
    ("GatewaySpoolFilling", 'gateway_spool_used_ratio{I, endpoint="b"}', "0.9x24"),
    ("GatewayLagging", 'gateway_route_lag_seconds{I, route="r"}', "400x24"),
    ("GatewayRefusing", 'gateway_route_refused_messages_total{I, route="r"}', "0 500x23"),
    ("GatewayRefusing", 'gateway_route_refused_messages_total{I, route="r"}', "500x24"),
    ("GatewayDeadLettersDropped", "gateway_dead_letters_dropped_total{I}", "0 7x23"),
    ("GatewayDeadLettersDropped", "gateway_dead_letters_dropped_total{I}", "7x24"),
    ("GatewayArchiveNotWriting", "gateway_archive_writing{I}", "0x24"),
    ("GatewaySpoolNotWriting", "gateway_spool_writing{I}", "0x24"),
    ("GatewayReconnecting", 'gateway_endpoint_reconnects_total{I, endpoint="b"}', "0+1x24"),
    ("GatewaySlow", 'gateway_route_delivery_seconds_bucket{I, route="r", le="+Inf"}', "0+9x90"),
    ("GatewayNightNotClean", "gateway_reconcile_status{I}", "1x24"),
    ("GatewayNightNoAnswer", "gateway_reconcile_status{I}", "2x24"),
    ("GatewaySourceGaps", "gateway_reconcile_source_gaps{I}", "1x24"),
    ("GatewayNightOverdue", "gateway_reconcile_finished_timestamp_seconds{I}", "-93601x24"),
    ("GatewayNoCleanNight", "gateway_reconcile_last_clean_timestamp_seconds{I}", "-180001x24"),
    ("GatewayNightJobFailed", 'node_systemd_unit_state{I, name="U.service", state="failed"}',
     "1x90"),
    ("GatewayNightJobOverdue", 'kube_cronjob_created{I, cronjob="reconcile"}', "-93601x90"),
]  # fmt: skip
STARTED: Final = ("gateway_start_time_seconds{I}", "_x12 0x24")
BESIDE: Final = {  # series that an expression needs beside
    "GatewayRefusing": [STARTED],
    "GatewayConversionFailing": [STARTED],
    "GatewayDeadLettersDropped": [STARTED],
    "GatewayHeartbeatMissing": [("gateway_heartbeat_interval_seconds{I}", "10x36")],
    "GatewaySlow": [
        ('gateway_route_delivery_seconds_bucket{I, route="r", le="10"}', "_x12 0+9x90"),
        ('gateway_route_delivery_seconds_bucket{I, route="r", le="5"}', "_x12 0x90"),
    ],
    "GatewaySourceGaps": [("gateway_reconcile_status{I}", "_x12 3x24")],
}
LABELS: Final = 'job="gateway", instance="a"'


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_every_alert_fires_from_an_absent_series(tmp_path: Path) -> None:
    """The series begins with its event, as after a start: at 60 s, with a scrape each 5 s."""
    tests = []
    for alert, series, values in BEGINNINGS:
        given = [(series, ABSENT + values), *BESIDE.get(alert, ())]
        end = 445 if values.endswith("x90") else 270  # seconds; later than its `for`
        firing = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)'
        tests.append(
            {
                "name": f"{alert} {values}",
                "interval": "5s",
                "input_series": [
                    {
                        "series": s.replace("I", LABELS, 1).replace("U", "gateway-reconcile"),
                        "values": v,
                    }
                    for s, v in given
                ],
                "promql_expr_test": [
                    {
                        "expr": firing,
                        "eval_time": f"{at}s",
                        "exp_samples": [{"labels": "{}", "value": fires}],
                    }
                    for at, fires in ((55, 0), (end, 1))
                ],
            }
        )
    file = tmp_path / "test.yaml"
    world = {"rule_files": [str(ALERTS)], "evaluation_interval": "5s", "tests": tests}
    file.write_text(yaml.safe_dump(world))

    promtool("test", "rules", str(file))
    assert {alert for alert, *_ in BEGINNINGS} | {"GatewayDown", "GatewayAbsent"} == {
        rule["alert"] for rule in rules()
    }


VANISHED: Final = """\
rule_files: [{rules}]
evaluation_interval: 5s
tests:
  - name: a target that vanishes
    interval: 5s
    input_series:
      - series: 'up{{job="gateway", instance="a"}}'
        values: "1 1 1 stale"
    alert_rule_test:
      - {{eval_time: 300s, alertname: GatewayAbsent, exp_alerts: []}}
      - eval_time: 360s
        alertname: GatewayAbsent
        exp_alerts:
          - exp_labels: {{job: gateway, severity: critical}}
            exp_annotations:
              summary: "Prometheus has no gateway to ask, or fewer than for most of the last hour"
  - name: one target of three that vanishes, and one that a rollout has for some minutes
    interval: 1m
    input_series:
      - {{series: 'up{{job="gateway", instance="a"}}', values: "1x100"}}
      - {{series: 'up{{job="gateway", instance="b"}}', values: "1x100"}}
      - {{series: 'up{{job="gateway", instance="c"}}', values: "1x60 stale"}}
      - {{series: 'up{{job="gateway", instance="d"}}', values: "_x30 1x5 stale"}}
    alert_rule_test:
      - {{eval_time: 40m, alertname: GatewayAbsent, exp_alerts: []}}
      - {{eval_time: 65m, alertname: GatewayAbsent, exp_alerts: []}}
      - eval_time: 67m
        alertname: GatewayAbsent
        exp_alerts:
          - exp_labels: {{severity: critical}}
            exp_annotations:
              summary: "Prometheus has no gateway to ask, or fewer than for most of the last hour"
      - {{eval_time: 95m, alertname: GatewayAbsent, exp_alerts: []}}
"""


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_a_target_that_vanishes_is_an_alert(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    write_test(file, VANISHED.format(rules=ALERTS))

    promtool("test", "rules", str(file))


NIGHT: Final = '{job="gateway-nights", instance="a"}'
NIGHTS_TEST: Final = """\
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1h
    input_series:
      - series: 'gateway_reconcile_status{night}'
        values: "1 2 3 0x60"
      - series: 'gateway_reconcile_source_gaps{night}'
        values: "0 0 2 2x60"
      - series: 'gateway_reconcile_finished_timestamp_seconds{night}'
        values: "0x60"
      - series: 'gateway_reconcile_last_clean_timestamp_seconds{night}'
        values: "0x60"
    alert_rule_test:
      - eval_time: 0h
        alertname: GatewayNightNotClean
        exp_alerts:
          - exp_labels: {{job: gateway-nights, instance: a, severity: critical}}
            exp_annotations:
              summary: "a: the last reconciled date is not clean; read its report"
      - {{eval_time: 1h, alertname: GatewayNightNotClean, exp_alerts: []}}
      - eval_time: 1h
        alertname: GatewayNightNoAnswer
        exp_alerts:
          - exp_labels: {{job: gateway-nights, instance: a, severity: critical}}
            exp_annotations:
              summary: "a: the last reconciliation ended without an answer"
      - eval_time: 2h
        alertname: GatewaySourceGaps
        exp_alerts:
          - exp_labels: {{job: gateway-nights, instance: a, severity: warning}}
            exp_annotations:
              summary: "a: sources may have missed messages in 2 gaps"
      - {{eval_time: 3h, alertname: GatewaySourceGaps, exp_alerts: []}}
      - {{eval_time: 26h, alertname: GatewayNightOverdue, exp_alerts: []}}
      - eval_time: 27h
        alertname: GatewayNightOverdue
        exp_alerts:
          - exp_labels: {{job: gateway-nights, instance: a, severity: critical}}
            exp_annotations:
              summary: "a: the last reconciliation ended 1d 3h 0m 0s ago"
      - {{eval_time: 50h, alertname: GatewayNoCleanNight, exp_alerts: []}}
      - eval_time: 51h
        alertname: GatewayNoCleanNight
        exp_alerts:
          - exp_labels: {{job: gateway-nights, instance: a, severity: critical}}
            exp_annotations:
              summary: "a: the last clean date ended 2d 3h 0m 0s ago"
"""


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_the_alerts_of_nights_follow_the_verdict_and_its_age(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    write_test(file, NIGHTS_TEST.format(rules=ALERTS, night=NIGHT))

    promtool("test", "rules", str(file))


JOB: Final = 'namespace="plant", cronjob="{}", job="kube-state-metrics", instance="k"'
JOBS_TEST: Final = """\
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - name: runs that succeed, fail and go on, and a job that is never scheduled
    interval: 1m
    input_series:
      - series: 'kube_cronjob_status_last_schedule_time{{{good}}}'
        values: "0x1440 86400x400"
      - series: 'kube_cronjob_status_last_successful_time{{{good}}}'
        values: "600x1440 87000x400"
      - series: 'kube_cronjob_status_last_schedule_time{{{failed}}}'
        values: "3600x1800"
      - series: 'kube_cronjob_status_last_successful_time{{{failed}}}'
        values: "600x1800"
      - series: 'kube_cronjob_status_last_schedule_time{{{running}}}'
        values: "3600x1800"
      - series: 'kube_cronjob_status_last_successful_time{{{running}}}'
        values: "600x1800"
      - series: 'kube_cronjob_status_active{{{running}}}'
        values: "1x1800"
      - series: 'kube_cronjob_created{{{unscheduled}}}'
        values: "0x1800"
      - series: 'kube_cronjob_status_last_schedule_time{{{other}}}'
        values: "0x1800"
    alert_rule_test:
      - eval_time: 2h
        alertname: GatewayNightJobFailed
        exp_alerts:
          - exp_labels: {{{failed_labels}}}
            exp_annotations:
              summary: "reconcile-1 at plant: the nightly job failed; its log has the verdict"
      - {{eval_time: 26h, alertname: GatewayNightJobOverdue, exp_alerts: []}}
      - eval_time: 26h30m
        alertname: GatewayNightJobOverdue
        exp_alerts:
          - exp_labels: {{{unscheduled_labels}}}
            exp_annotations:
              summary: "reconcile-3 at plant: the nightly job started 1d 2h 30m 0s ago"
  - name: the systemd unit fails, and its timer stops
    interval: 1m
    input_series:
      - series: 'node_systemd_unit_state{{name="{unit}", state="failed", instance="a"}}'
        values: "0x60 1x1800"
      - series: 'node_systemd_timer_last_trigger_seconds{{name="{timer}", instance="a"}}'
        values: "0x60 3600x1800"
    alert_rule_test:
      - {{eval_time: 30m, alertname: GatewayNightJobFailed, exp_alerts: []}}
      - eval_time: 2h
        alertname: GatewayNightJobFailed
        exp_alerts:
          - exp_labels: {{name: {unit}, state: failed, instance: a, severity: critical}}
            exp_annotations:
              summary: "{unit} at a: the nightly job failed; its log has the verdict"
      - {{eval_time: 27h, alertname: GatewayNightJobOverdue, exp_alerts: []}}
      - eval_time: 28h
        alertname: GatewayNightJobOverdue
        exp_alerts:
          - exp_labels: {{name: {timer}, instance: a, severity: critical}}
            exp_annotations:
              summary: "{timer} at a: the nightly job started 1d 3h 0m 0s ago"
"""


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_a_failed_and_an_overdue_job_are_alerts(tmp_path: Path) -> None:
    jobs = {
        "good": "reconcile", "failed": "reconcile-1", "running": "near-reconcile-2",
        "unscheduled": "reconcile-3", "other": "backup",
    }  # fmt: skip
    file = tmp_path / "test.yaml"
    series = {key: JOB.format(name) for key, name in jobs.items()}
    labels = {
        f"{key}_labels": text.replace("=", ": ") + ", severity: critical"
        for key, text in series.items()
    }
    units = {f: f"gateway-reconcile.{s}" for f, s in (("unit", "service"), ("timer", "timer"))}
    write_test(file, JOBS_TEST.format(rules=ALERTS, **series, **labels, **units))

    promtool("test", "rules", str(file))


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
