"""Measures the pattern table, tests of every pattern with and without paho, and proofs of pairs.

Run as `python benchmarks/table.py [patterns]`; the seconds are processor time of one core.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
import tracemalloc
from collections.abc import Callable

from paho.mqtt.client import topic_matches_sub

from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, WildcardExclusions
from gateway.model.subject_search import covers, overlaps
from gateway.routing.pattern_trie import PatternTrie

SYSTEMS = ("orders", "plant", "md", "fleet", "erp", "audit")
SITES = [f"site{number}" for number in range(40)]
UNITS = [f"unit{number}" for number in range(60)]
FIELDS = ("temp", "rpm", "state", "alarm", "price", "volume", "ack", "new")
EXCLUSIONS = WildcardExclusions(first_level_prefixes=("$",))  # EMS and MQTT alike
MIX = {  # per thousand
    "plain": 495,
    "glob": 50,
    "one": 200,
    "none or more": 100,
    "one or more": 100,
    "both": 50,
    "rest in front": 5,
}
NAMES, SAMPLE, ROUTES = 200_000, 40, 1_000


def name(rng: random.Random) -> tuple[str, ...]:
    levels = [rng.choice(SYSTEMS), rng.choice(SITES), rng.choice(UNITS), rng.choice(FIELDS)]
    return (*levels, f"n{rng.randrange(1_000_000)}")[: rng.choice((3, 4, 4, 5, 5, 5))]


def pattern(rng: random.Random) -> Pattern:
    """Return a pattern: half are plain names, one in twenty has a partial wildcard."""
    levels: list[Level] = [Literal(text) for text in name(rng)]
    place = rng.randrange(1, len(levels))
    deep = max(2, place)  # subscriptions to a whole first level are rare
    match rng.choices(tuple(MIX), tuple(MIX.values()))[0]:
        case "glob":
            levels[place] = Glob((rng.choice(("site1", "unit2", "al", "n7")), ""))
        case "one":
            levels[place] = AnyOne()
        case "none or more":
            levels[deep:] = [AnyMany(0)]
        case "one or more":
            levels[deep:] = [AnyMany(1)]
        case "both":
            levels[deep:] = [AnyOne(), AnyMany(1)]
        case "rest in front":
            levels[:place] = [AnyMany(0)]
        case _:
            pass
    return Pattern(tuple(levels), EXCLUSIONS)


def mqtt_filter(one: Pattern) -> str:
    """Return an MQTT filter for paho; a pattern that MQTT cannot express is widened."""
    marks = {AnyMany: "#", AnyOne: "+", Glob: "+"}
    texts = [x.text if isinstance(x, Literal) else marks[type(x)] for x in one.levels]
    return "/".join(texts)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def table_of(patterns: list[Pattern]) -> PatternTrie[int]:
    table: PatternTrie[int] = PatternTrie()
    for number, one in enumerate(patterns):
        table.add(one, number)
    return table


def bench_table(patterns: list[Pattern], names: list[tuple[str, ...]]) -> None:
    build = min(seconds(lambda: table_of(patterns)) for _ in range(3))
    tracemalloc.start()
    table = table_of(patterns)
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rate = len(names) / min(seconds(lambda: list(map(table.find, names))) for _ in range(3))
    found = sum(len(table.find(one)) for one in names) / len(names)
    bare = dict.fromkeys(names, ())
    lookups = len(names) / seconds(lambda: [bare[one] for one in names])
    sample = names[:SAMPLE]
    naive_time = seconds(lambda: [[p for p in patterns if matches(p, one)] for one in sample])
    filters = [mqtt_filter(one) for one in patterns]
    topics = ["/".join(one) for one in sample]
    paho_time = seconds(
        lambda: [[f for f in filters if topic_matches_sub(f, topic)] for topic in topics]
    )
    print(f"patterns          {len(patterns):>12,}")
    print(f"build             {build:>12.3f} s      (goal 1 s)")
    print(f"memory            {memory / 2**20:>12.1f} MiB    (goal 50)")
    print(f"find, new names   {rate:>12,.0f} /s     (goal 100,000); {found:.1f} matches per name")
    print(f"bare dict         {lookups:>12,.0f} /s     {lookups / rate:.0f} times the table")
    for label, spent in (("every pattern", naive_time), ("every filter, paho", paho_time)):
        each = SAMPLE / spent
        print(f"{label:<18}{each:>12,.0f} /s     the table is {rate / each:,.0f} times faster")


def bench_proofs(routes: list[Pattern]) -> None:
    pairs = list(itertools.combinations([[one] for one in routes], 2))
    start = time.process_time()
    hits = sum(overlaps(a, b) for a, b in pairs)
    spent = time.process_time() - start
    print(f"overlap of pairs  {len(pairs):>12,} in {spent:.2f} s (goal 5 s); {hits:,} overlap")
    start = time.process_time()
    dead = sum(covers(routes[:number], [one]) for number, one in enumerate(routes))
    spent = time.process_time() - start
    print(f"covered by earlier {len(routes):>12,} in {spent:.2f} s; {dead} covered")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(7)  # noqa: S311  # the same patterns in every run
    patterns = list(dict.fromkeys(pattern(rng) for _ in range(2 * count)))[:count]
    bench_table(patterns, [name(rng) for _ in range(NAMES)])
    bench_proofs(patterns[:ROUTES])


if __name__ == "__main__":
    main()
