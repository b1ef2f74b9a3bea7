"""All proofs over a thousand routes: seconds, and memory at its highest.

Run as `python -m benchmarks.proofs [routes]`; the mixture of routes is the same in every run.
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections import Counter

from gateway.dialects.registry import DIALECTS
from gateway.proofs import EndpointFacts, prove
from gateway.routing.captures import SourcePattern, parse_source
from gateway.routing.route import Route, Target
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

WORDS = ("orders", "plant", "md", "fleet", "erp", "audit")
SITES = [f"site{number}" for number in range(40)]
SYSTEMS = {
    **dict.fromkeys(("ems1", "ems2"), "ems"),
    **dict.fromkeys(("mqtt1", "mqtt2", "mqtt3"), "mqtt"),
    **dict.fromkeys(("smf1", "smf2"), "smf"),
    **dict.fromkeys(("ibm1",), "ibm"),
    **dict.fromkeys(("rv1",), "rv"),
    **dict.fromkeys(("yami1",), "yami4"),
}
SHAPES: tuple[tuple[list[str], list[str]], ...] = (
    (["{x}", "{rest...}"], ["{x}", "{rest...}"]),
    (["{x}", "{y}"], ["{y}", "fixed", "{x}"]),
    (["{rest...}"], []),  # the name is kept
    (["{x}", "{y}"], ["{x}-{y}"]),
    (["{x}"], ["{x}"]),
    (["{x}", "{y}"], ["{x}"]),
)
WEIGHTS = (40, 30, 20, 3, 4, 3)
EXCLUDING = 0.1  # routes with an exclude
GOAL_SECONDS, GOAL_MIB = 5, 500


def route(number: int, rng: random.Random, *, tangled: bool) -> Route:
    """A route of a shape that mapping files are full of; one in ten loses something.

    Tangled ones share their prefixes, so that many meet, some twice and some in a round.
    """
    source, target = rng.sample(tuple(SYSTEMS), 2)
    dialect, there = DIALECTS[SYSTEMS[source]], DIALECTS[SYSTEMS[target]]
    before = [rng.choice(WORDS), rng.choice(SITES)] + ([] if tangled else [f"u{number}"])
    after, made = rng.choices(SHAPES, WEIGHTS)[0]
    text = dialect.leading + dialect.separator.join([*before, *after])
    pattern = parse_source(text, dialect)
    template = None
    if made:
        start = before if tangled else ["from", source, *before]
        name = there.leading + there.separator.join([*start, *made])
        template = parse_template(name, there, pattern)
    sink = Target(target, target, Renderer(there), template)
    excludes: tuple[SourcePattern, ...] = ()
    if rng.random() < EXCLUDING:
        text = dialect.leading + dialect.separator.join([*before, "private", *after[1:]])
        excludes = (parse_source(text, dialect),)
    return Route(f"r{number}", source, dialect, pattern, (sink,), excludes)


def bench(count: int, *, tangled: bool) -> None:
    rng = random.Random(7)  # noqa: S311  # the same routes in every run
    routes = [route(number, rng, tangled=tangled) for number in range(count)]
    endpoints = {
        name: EndpointFacts(name, DIALECTS[system], ("from", *WORDS) if "1" in name else ())
        for name, system in SYSTEMS.items()
    }
    start = time.process_time()
    found = prove(routes, endpoints)
    spent = time.process_time() - start
    tracemalloc.start()
    prove(routes, endpoints)
    memory = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(f"routes            {count:>12,}          {'tangled' if tangled else 'as usual'}")
    print(f"all proofs        {spent:>12.2f} s      (goal {GOAL_SECONDS} s)")
    print(f"memory            {memory:>12.1f} MiB    (goal {GOAL_MIB})")
    for (severity, rule), number in sorted(Counter((f.severity, f.rule) for f in found).items()):
        print(f"  {severity:<8}{rule:<18}{number:>6,}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    bench(count, tangled=False)
    bench(count, tangled=True)


if __name__ == "__main__":
    main()
