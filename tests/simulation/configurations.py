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
                   "yami4": "yami4", "nats": "nats", "rabbitmq": "rabbitmq",
                   "amqp": "rabbitmq", "kafka": "kafka"}  # fmt: skip
LEASE_SECONDS: Final = 1
DEAD_LETTERS: Final = "dead"  # the name of their published copies
SEPARATORS: Final = {"mqtt": "/", "ems": ".", "smf": "/", "yami4": ".", "nats": ".",
                     "rabbitmq": ".", "kafka": ":"}  # fmt: skip
_ALL: Final = {
    "mqtt": "#",
    "ems": ">",
    "smf": ">",
    "nats": ">",
    "rabbitmq": "#",
    "kafka": ">",
}  # of a pattern
_ENDPOINTS: Final = {
    "mqtt5": "kind: mqtt, host: {host}, version: '5'",
    "mqtt311": "kind: mqtt, host: {host}, version: 3.1.1",
    "jms": "kind: jms, urls: ['tcp://{host}:7222'], client_id: {name}, durable: all",
    "solace": "kind: solace, url: 'tcp://{host}:55555', queue: all",
    "yami4": "kind: yami4, url: 'tcp://{host}:12345'",
    "nats": "kind: nats, url: 'nats://{host}:4222', stream: S",
    "rabbitmq": "kind: rabbitmq, url: 'amqp://{host}:5672/'",
    "amqp": "kind: amqp, url: 'amqp://{host}:5672/'",
    "kafka": "kind: kafka, servers: ['{host}:9092']",
}
_REMOVES: Final = {"solace": ", subscribe_queue: false"}  # of an endpoint
_RENAMED: Final = "-renamed"  # the end of a name that a reload gave an endpoint
_KEY_FILE: Final = "path.key"
_SHARE: Final = "$share/all/"  # of a subscription over MQTT that removes
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
    "hub": {"g1": [("a", "h")], "g2": [("c", "h")]},
    "ring": {"g1": [("a", "b")], "g2": [("b", "c")], "g3": [("c", "a")]},
    "mesh": {
        "g1": [("a", "b"), ("a", "c")],
        "g2": [("b", "a"), ("b", "c")],
        "g3": [("c", "a"), ("c", "b")],
    },
    "queue": {"g1": [("a", "b")], "g2": [("b", "c")]},
    "redrive": {"g1": [("a", "b"), ("b", "b")]},
    "circle": {"g1": [("a", "b")]},
}
_BOTH: Final = frozenset({"both", "hub", "ring", "mesh"})  # shapes with `direction: both`
DEAD_QUEUE: Final = "b.dead"  # the place of rejected messages at the broker b
# The first level of the names that are sent to a broker, and of those that are read there.
_SENT: Final = {("redrive", "b"): "work", ("circle", "b"): "there"}
_READ: Final = {("redrive", "b"): "dead"}


def place_of(endpoint: str) -> str:
    """Return the broker that an endpoint, or the label of a target, is at."""
    return endpoint.replace(_RENAMED, "")


def _name(place: str, variant: str) -> str:
    return place + _RENAMED if (variant, place) == ("rename", "b") else place


def hops(plan: Plan) -> dict[str, dict[str, list[str]]]:
    """The target brokers by gateway and source broker."""
    found: dict[str, dict[str, list[str]]] = {}
    for gateway, routes in _ROUTES[plan.shape].items():
        found[gateway] = {}
        for source, targets in routes:
            found[gateway].setdefault(source, []).extend(targets)
            for each in targets if plan.shape in _BOTH else ():
                found[gateway].setdefault(each, []).append(source)
    return found


def name_of(system: str, key: str, first: str = "a") -> str:
    return SEPARATORS[DIALECTS[system]].join((first, key))


def key_of(system: str, name: str) -> str:
    """Return the key in a name, whatever its first level is."""
    return name.partition(SEPARATORS[DIALECTS[system]])[2]


def first_level(plan: Plan, place: str) -> str:
    """Return the first level of what applications publish at a place."""
    return _READ["redrive", "b"] if place == DEAD_QUEUE else _READ.get((plan.shape, place), "a")


def configuration(plan: Plan, gateway: str, folder: Path, variant: str = "") -> Configuration:
    """The configuration of a gateway of the plan.

    A `variant` has a removed target, another sink, another source or another name of `b`.
    """
    cached = _load(_yaml(plan, gateway, variant))
    archive, spool = cached.archive, cached.spool
    if archive is not None:
        archive = replace(archive, path=str(folder / "archive"))
    if spool is not None:
        spool = replace(spool, path=str(folder / "spool"))
    return replace(cached, archive=archive, spool=spool)


def _yaml(plan: Plan, gateway: str, variant: str) -> str:
    lines = [f"gateway: {{{_own_settings(plan, gateway)}}}", "endpoints:"]
    lines += [_endpoint(plan, gateway, name, variant) for name in _own_brokers(plan, gateway)]
    if plan.archive:
        lines.append(f"archive: {{path: archive, sync: {plan.sync}, segment_seconds: 20}}")
    if plan.spool:
        limits = f", when_full: {plan.when_full}"
        limits += f", messages: {plan.spool_messages}" if plan.spool_messages else ""
        limits += f", seconds: {plan.spool_seconds}" if plan.spool_seconds else ""
        lines.append(f"spool: {{path: spool, bytes: 65536{limits}}}")
        if plan.dead_letter_endpoint:
            lines.append(f"dead_letters: {{endpoint: {_name('b', variant)}, name: {DEAD_LETTERS}}}")
    if plan.is_pair:
        lines.append(f"standby: {{lease: {{kind: file, path: lease}}, seconds: {LEASE_SECONDS}}}")
    lines.append("routes:")
    for number, (source, targets) in enumerate(_ROUTES[plan.shape][gateway]):
        chosen = targets.replace("c", "") if variant == "remove" else targets
        lines += [
            f"  {_route_name(plan, gateway, number)}:",
            f"    from: {{endpoint: {_name(source, variant)}, {_selection(plan, source)}}}",
            f"    duplicates: {plan.duplicates}",
            *(["    retained: ignore"] if plan.fields else []),
            *(["    direction: both"] if plan.shape in _BOTH else []),
            *([f"    heartbeat: {_heartbeat(plan, source)}"] if plan.heartbeat else []),
            "    to:",
            *(f"      - {{endpoint: {_name(each, variant)}, template: '{_pattern(plan, each)}'"
              f"{_tap(plan, each)}{_id(plan, source)}{_thin(plan, variant)}}}"
              for each in chosen),
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _own_settings(plan: Plan, gateway: str) -> str:
    name, _, instance = gateway.partition(".")
    settings = f"name: {plan.prefix}{'g' if plan.equal_names else name}, stop_seconds: 4"
    settings += ", heartbeat_seconds: 2, stuck_after_seconds: 4, isolate_after: 2"
    if plan.is_pair:
        settings += f", instance: {instance}"
    settings += f", path_key: '${{file:{_KEY_FILE}}}'" if plan.path_key else ""
    return settings + ("" if plan.max_hops is None else f", max_hops: {plan.max_hops}")


def _endpoint(plan: Plan, gateway: str, name: str, variant: str) -> str:
    system = plan.brokers[name]
    changed = (variant, name) in {("sink", "b"), ("source", "a")}
    shortest, longest = plan.backoff
    text = _ENDPOINTS[system].format(name=name, host=plan.hosts.get(f"{gateway}.{name}", name))
    text += f", backoff_min: {shortest}, backoff_max: {longest * (0.75 if changed else 1)}"
    if system == "mqtt5" and plan.sink_qos is not None:
        text += f", qos: {plan.sink_qos}"
    text += f", broker_id: {name}" if plan.broker_ids else ""
    text += f", allow: ['{_ALL[DIALECTS[system]]}']" if plan.fields else ""
    text += _REMOVES.get(system, "") if name in plan.removing else ""
    text += f", was: {name}" if _name(name, variant) != name else ""
    return f"  {_name(name, variant)}: {{{text}}}"


def _route_name(plan: Plan, gateway: str, number: int) -> str:
    """Name a route by its source; sites that have one file have the names of gateway and routes."""
    if plan.equal_names:
        return f"r{number}"
    routes = _ROUTES[plan.shape][gateway]
    source, targets = routes[number]
    return f"r-{source}{targets if [each for each, _ in routes].count(source) > 1 else ''}"


def _own_brokers(plan: Plan, gateway: str) -> list[str]:
    """The brokers with an endpoint of the gateway, in the order of the plan."""
    own = {each for source, targets in _ROUTES[plan.shape][gateway] for each in (source, *targets)}
    own |= {"b"} if plan.dead_letter_endpoint else set()
    return [each for each in plan.brokers if each in own]


def _pattern(plan: Plan, broker: str) -> str:
    last = "{payload.key|default:beat}" if plan.fields else "{rest...}"
    return name_of(plan.brokers[broker], last, _SENT.get((plan.shape, broker), "a"))


def _selection(plan: Plan, broker: str) -> str:
    """The pattern of a route at a broker, with the share of MQTT where its source removes."""
    system, removes = plan.brokers[broker], broker in plan.removing
    pattern = name_of(system, "{rest...}", first_level(plan, broker))
    share = _SHARE if system == "mqtt5" and removes else ""
    selector = ", selector: \"key = 'k1'\"" if plan.selector and removes else ""
    return f"pattern: '{share}{pattern}'{selector}"


def _id(plan: Plan, source: str) -> str:
    return ", add_message_id: true" if plan.message_ids and source == "a" else ""


def _thin(plan: Plan, variant: str) -> str:
    if variant == "thin" or not (plan.thin or plan.on_change):
        return ""
    return ", thin: " + ("{on_change: true}" if plan.on_change else f"{{seconds: {plan.thin}}}")


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
        path.with_name(_KEY_FILE).write_text("the key of all gateways")
        return load(path)
