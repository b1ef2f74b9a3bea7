"""The configurations of a plan: real ones, with the real kinds of endpoints."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gateway.config.load import Configuration, load
from tests.simulation.plan import INSTANCES, Plan

DIALECTS: Final = {"mqtt5": "mqtt", "mqtt311": "mqtt", "jms": "ems", "solace": "smf",
                   "yami4": "yami4", "nats": "nats", "rabbitmq": "rabbitmq"}  # fmt: skip
LEASE_SECONDS: Final = 1
DEAD_LETTERS: Final = "dead"  # the name of their published copies
SEPARATORS: Final = {"mqtt": "/", "ems": ".", "smf": "/", "yami4": ".", "nats": ".",
                     "rabbitmq": "."}  # fmt: skip
_ALL: Final = {"mqtt": "#", "ems": ">", "smf": ">", "nats": ">", "rabbitmq": "#"}  # of a pattern
_ENDPOINTS: Final = {
    "mqtt5": "kind: mqtt, host: {name}, version: '5'",
    "mqtt311": "kind: mqtt, host: {name}, version: 3.1.1",
    "jms": "kind: jms, urls: ['tcp://{name}:7222'], client_id: {name}, durable: all",
    "solace": "kind: solace, url: 'tcp://{name}:55555', queue: all",
    "yami4": "kind: yami4, url: 'tcp://{name}:12345'",
    "nats": "kind: nats, url: 'nats://{name}:4222', stream: S",
    "rabbitmq": "kind: rabbitmq, url: 'amqp://{name}:5672/'",
}
# gateway -> routes: source, targets
_ROUTES: Final = {
    "one": {"g1": [("a", "b")]},
    "fan": {"g1": [("a", "bc")]},
    "both": {"g1": [("a", "b")]},
    "relay": {"g1": [("a", "b"), ("b", "c")]},
    "chain": {"g1": [("a", "b")], "g2": [("b", "c")]},
    "ring2": {"g1": [("a", "b")], "g2": [("b", "a")]},
    "ring3": {"g1": [("a", "b")], "g2": [("b", "c")], "g3": [("c", "a")]},
    "pair": {each: [("a", "b")] for each in INSTANCES},
}


def hops(plan: Plan) -> dict[str, dict[str, list[str]]]:
    """The target brokers by gateway and source broker."""
    found: dict[str, dict[str, list[str]]] = {}
    for gateway, routes in _ROUTES[plan.shape].items():
        found[gateway] = {source: list(targets) for source, targets in routes}
    if plan.shape == "both":
        found["g1"]["b"] = ["a"]
    return found


def name_of(system: str, key: str) -> str:
    return SEPARATORS[DIALECTS[system]].join(("a", key))


def configuration(plan: Plan, gateway: str, folder: Path, variant: str = "") -> Configuration:
    """The configuration of a gateway of the plan.

    A `variant` has a removed target, another sink or another source.
    """
    cached = _load(_yaml(plan, gateway, variant))
    archive, spool = cached.archive, cached.spool
    if archive is not None:
        archive = replace(archive, path=str(folder / "archive"))
    if spool is not None:
        spool = replace(spool, path=str(folder / "spool"))
    return replace(cached, archive=archive, spool=spool)


def _yaml(plan: Plan, gateway: str, variant: str) -> str:
    settings = "stop_seconds: 4, heartbeat_seconds: 2, stuck_after_seconds: 4, isolate_after: 2"
    name, _, instance = gateway.partition(".")
    if plan.is_pair:
        settings += f", instance: {instance}"
    lines = [f"gateway: {{name: {plan.prefix}{name}, {settings}}}", "endpoints:"]
    for name, system in plan.brokers.items():
        changed = (variant, name) in {("sink", "b"), ("source", "a")}
        shortest, longest = plan.backoff
        timing = f"backoff_min: {shortest}, backoff_max: {longest * (0.75 if changed else 1)}"
        if system == "mqtt5" and plan.sink_qos is not None:
            timing += f", qos: {plan.sink_qos}"
        lines.append(f"  {name}: {{{_ENDPOINTS[system].format(name=name)}, {timing}}}")
    if plan.archive:
        lines.append(f"archive: {{path: archive, sync: {plan.sync}, segment_seconds: 20}}")
    if plan.spool:
        limits = f", when_full: {plan.when_full}"
        limits += f", messages: {plan.spool_messages}" if plan.spool_messages else ""
        limits += f", seconds: {plan.spool_seconds}" if plan.spool_seconds else ""
        lines.append(f"spool: {{path: spool, bytes: 65536{limits}}}")
        if plan.dead_letter_endpoint:
            lines.append(f"dead_letters: {{endpoint: b, name: {DEAD_LETTERS}}}")
    if plan.is_pair:
        lines.append(f"standby: {{lease: {{kind: file, path: lease}}, seconds: {LEASE_SECONDS}}}")
    lines.append("routes:")
    for source, targets in _ROUTES[plan.shape][gateway]:
        chosen = targets.replace("c", "") if variant == "remove" else targets
        lines += [
            f"  r-{source}:",
            f"    from: {{endpoint: {source}, pattern: '{_pattern(plan, source)}'}}",
            f"    duplicates: {plan.duplicates}",
            *(["    direction: both"] if plan.shape == "both" else []),
            *([f"    heartbeat: {_heartbeat(plan, source)}"] if plan.heartbeat else []),
            "    to:",
            *(f"      - {{endpoint: {each}, template: '{_pattern(plan, each)}'"
              f"{_tap(plan, each)}}}" for each in chosen),
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _pattern(plan: Plan, broker: str) -> str:
    return SEPARATORS[DIALECTS[plan.brokers[broker]]].join(("a", "{rest...}"))


def _tap(plan: Plan, broker: str) -> str:
    if not plan.taps:
        return ""
    system = DIALECTS[plan.brokers[broker]]
    return f", observe: '{SEPARATORS[system].join(('a', _ALL[system]))}'"


def _heartbeat(plan: Plan, broker: str) -> str:
    return SEPARATORS[DIALECTS[plan.brokers[broker]]].join(("a", "beat"))


@lru_cache(maxsize=4096)
def _load(yaml: str) -> Configuration:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gateway.yaml"
        path.write_text(yaml)
        return load(path)
