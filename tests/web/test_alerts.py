"""Prometheus itself runs the alerts: in time, from an absent series, and not at a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.web.promtool import ALERTS, PROMTOOL, map_seconds, promtool, rules, write_test
from tests.web.test_deploy import ALERT_TIMEOUT, CONNECTION_LOSS_TIME, PROMETHEUS_CONFIG

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


SUSPECTED: Final = """\
evaluation_interval: 30s
tests:
  - interval: 15s
    input_series:
      - series: 'gateway_loop_suspected{job="gateway", instance="a", endpoint="b"}'
        values: "0 0 0 0 1x20 0x20"
    alert_rule_test:
      - {eval_time: 30s, alertname: GatewayLoopSuspected, exp_alerts: []}
      - eval_time: 90s
        alertname: GatewayLoopSuspected
        exp_alerts:
          - exp_labels: {job: gateway, instance: a, endpoint: b, severity: warning}
            exp_annotations:
              summary: "a: messages from b may go round"
      - {eval_time: 480s, alertname: GatewayLoopSuspected, exp_alerts: []}
"""


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_a_suspected_loop_alerts_at_once_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    write_test(file, SUSPECTED)

    promtool("test", "rules", str(file))


SERIES: Final = '{job="gateway", instance="a", endpoint="b", side="sink"}'
RULE_TEST: Final = """\
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
    write_test(file, RULE_TEST.format(series=SERIES, late=int(late)))

    promtool("test", "rules", str(file))


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
    ("GatewayLoopSuspected", 'gateway_loop_suspected{I, endpoint="b"}', "1x24"),
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
    ("GatewaySourceBehind", 'gateway_source_backlog_messages{I, endpoint="b"}', "200000x24"),
    ("GatewaySlow", 'gateway_route_delivery_seconds_bucket{I, route="r", le="+Inf"}', "0+9x90"),
    ("GatewayNightNotClean", "gateway_reconcile_status{I}", "1x24"),
    ("GatewayNightNoAnswer", "gateway_reconcile_status{I}", "2x24"),
    ("GatewaySourceGaps", "gateway_reconcile_source_gaps{I}", "1x24"),
    ("GatewayUnprovenCuts", "gateway_reconcile_cut_messages{I, class=\"cut on another's word\"}",
     "1x24"),
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
    "GatewayUnprovenCuts": [("gateway_reconcile_status{I}", "_x12 3x24")],
}
LABELS: Final = 'job="gateway", instance="a"'


@pytest.mark.nightly
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
    write_test(file, VANISHED.format())

    promtool("test", "rules", str(file))


NIGHT: Final = '{job="gateway-nights", instance="a"}'
NIGHTS_TEST: Final = """\
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
    write_test(file, NIGHTS_TEST.format(night=NIGHT))

    promtool("test", "rules", str(file))


JOB: Final = 'namespace="plant", cronjob="{}", job="kube-state-metrics", instance="k"'
JOBS_TEST: Final = """\
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
    write_test(file, JOBS_TEST.format(**series, **labels, **units))

    promtool("test", "rules", str(file))
