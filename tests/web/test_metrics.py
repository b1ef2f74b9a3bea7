from __future__ import annotations

from collections import Counter

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway.archive.journal.rolling import WaitingJournals
from gateway.runtime.status import Status
from gateway.web.metrics import make_registry
from tests.web.status_samples import HOLDER, START, SUSPECTED, FakeStatus, endpoint, route, status


def samples(now: Status) -> dict[tuple[str, ...], float]:
    """Return values by name and label values, sorted by label; every series is unique."""
    text = generate_latest(make_registry(FakeStatus(now).snapshot)).decode()
    found = [
        ((sample.name, *sample.labels.values()), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    assert max(Counter(key for key, _ in found).values()) == 1
    return dict(found)


def test_every_number_of_the_status_has_a_series() -> None:
    latency = (5, 3, *[0] * 12, 1)
    full = status(
        endpoints=(
            endpoint(counts={"unasked": 2}, backlog=12),
            endpoint(
                "office", "sink", connection="lost", reconnects=4, held=9, spooled_messages=7,
                spooled_bytes=700, spooled_age=5.5, spool_share=0.25,
            ),
        ),
        routes=(
            route(
                received=100, received_bytes=9_000, delivered=90, spooled=4, ignored=1,
                unselected=2, loops=3, duplicates=5, thinned=8, rules={"too-long": 6},
                lost_fields={"reply_to": 7}, latencies=latency, latency_sum=2.5, heartbeat_age=1.5,
                lag=4.5,
            ),
        ),
        dead_letters=6, dead_letter_bytes=66, dead_letters_dropped=1, archive_queued=42,
        dead_letters_sent_again=3,
        archive_failure="disk full", pair=HOLDER, reload_refused="gateway.yaml:3:1: prot",
        journals=WaitingJournals(journals=3, failed=2, buffer_share=0.5),
        suspected_loops=(SUSPECTED,),
    )  # fmt: skip

    found = samples(full)

    expected: dict[tuple[str, ...], float] = {
        ("gateway_ready",): 0,
        ("gateway_start_time_seconds",): START,
        ("gateway_archive_writing",): 0,
        ("gateway_spool_writing",): 1,
        ("gateway_archive_queued_bytes",): 42,
        ("gateway_reload_successful",): 0,
        ("gateway_archive_journals",): 3,
        ("gateway_archive_failed_conversions_total",): 2,
        ("gateway_archive_buffer_used_ratio",): 0.5,
        ("gateway_certificate_expiry_time_seconds", "web.cert_file"): START + 86_400,
        ("gateway_dead_letters",): 6,
        ("gateway_dead_letter_bytes",): 66,
        ("gateway_dead_letters_dropped_total",): 1,
        ("gateway_dead_letters_sent_again_total",): 3,
        ("gateway_lease_held", "plant-1"): 1,
        ("gateway_lease_number", "plant-1"): 7,
        ("gateway_lease_standbys", "plant-1"): 1,
        ("gateway_lease_reachable", "plant-1"): 1,
        ("gateway_endpoint_connected", "plant", "source", "mqtt"): 1,
        ("gateway_endpoint_connected", "office", "sink", "mqtt"): 0,
        ("gateway_endpoint_reconnects_total", "office", "sink", "mqtt"): 4,
        ("gateway_endpoint_events_total", "plant", "unasked", "source"): 2,
        ("gateway_loop_suspected", "plant"): 1,
        ("gateway_source_backlog_messages", "plant"): 12,
        ("gateway_target_held_bytes", "office"): 9,
        ("gateway_spool_messages", "office"): 7,
        ("gateway_spool_bytes", "office"): 700,
        ("gateway_spool_oldest_seconds", "office"): 5.5,
        ("gateway_spool_used_ratio", "office"): 0.25,
        ("gateway_route_received_messages_total", "telemetry"): 100,
        ("gateway_route_received_bytes_total", "telemetry"): 9_000,
        ("gateway_route_delivered_messages_total", "telemetry"): 90,
        ("gateway_route_spooled_messages_total", "telemetry"): 4,
        ("gateway_route_ignored_messages_total", "telemetry"): 1,
        ("gateway_route_unselected_messages_total", "telemetry"): 2,
        ("gateway_route_loops_total", "telemetry"): 3,
        ("gateway_route_duplicates_total", "telemetry"): 5,
        ("gateway_route_thinned_messages_total", "telemetry"): 8,
        ("gateway_route_refusals_total", "telemetry", "too-long"): 6,
        ("gateway_route_lost_fields_total", "reply_to", "telemetry"): 7,
        ("gateway_route_heartbeat_age_seconds", "telemetry"): 1.5,
        ("gateway_route_lag_seconds", "telemetry"): 4.5,
        ("gateway_route_delivery_seconds_bucket", "0.001", "telemetry"): 5,
        ("gateway_route_delivery_seconds_bucket", "0.0025", "telemetry"): 8,
        ("gateway_route_delivery_seconds_bucket", "60.0", "telemetry"): 8,
        ("gateway_route_delivery_seconds_bucket", "+Inf", "telemetry"): 9,
        ("gateway_route_delivery_seconds_count", "telemetry"): 9,
        ("gateway_route_delivery_seconds_sum", "telemetry"): 2.5,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert ("process_resident_memory_bytes",) in found


def test_a_source_without_a_suspicion_is_zero_and_a_target_has_none() -> None:
    found = samples(status(suspected_loops=()))

    assert found["gateway_loop_suspected", "plant"] == 0
    assert ("gateway_loop_suspected", "office") not in found


def test_any_text_can_be_a_label() -> None:
    rule = 'a "quoted" \\ word\nand a line'

    found = samples(status(routes=(route(rules={rule: 3, "é": 1}),)))

    assert found["gateway_route_refusals_total", "telemetry", rule] == 3
    assert found["gateway_route_refusals_total", "telemetry", "é"] == 1


def test_several_sources_of_a_route_are_one_series() -> None:
    found = samples(status(routes=(route(), route(source="other x/#"))))

    assert found["gateway_route_received_messages_total", "telemetry"] == 10


def test_rules_past_the_limit_count_together() -> None:
    rules = {f"rule-{number}": number for number in range(1, 101)}

    found = samples(status(routes=(route(rules=rules),)))

    series = {key[2]: value for key, value in found.items() if key[0].endswith("refusals_total")}
    assert len(series) == 64
    assert sum(series.values()) == sum(rules.values())
    assert series["rule-100"] == 100
    assert series["other"] == sum(range(1, 38))
