"""Sets of routes for the proofs: an ordinary set, and sets that are each hard in one respect.

A set has a given number of routes and is the same in every run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from gateway.dialects.registry import DIALECTS
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

WORDS = ("orders", "plant", "md", "fleet", "erp", "audit")
SITES = [f"site{number}" for number in range(40)]
CHAIN = 10  # brokers in a row
SYSTEMS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ems1", "ems2"), "ems"),
        **dict.fromkeys(("mqtt1", "mqtt2", "mqtt3"), "mqtt"),
        **dict.fromkeys(("smf1", "smf2"), "smf"),
        **dict.fromkeys(("ibm1", "ibm2"), "ibm"),
        **dict.fromkeys(("rv1",), "rv"),
        **dict.fromkeys(("yami1",), "yami4"),
        **dict.fromkeys(("smart1", "smart2"), "smartsockets"),
        **{f"chain{number}": "mqtt" for number in range(CHAIN)},
    }
)
USUAL = ("ems1", "ems2", "mqtt1", "mqtt2", "mqtt3", "smf1", "smf2", "ibm1", "rv1", "yami1")
SHAPES: tuple[tuple[list[str], list[str]], ...] = (
    (["{x}", "{rest...}"], ["{x}", "{rest...}"]),
    (["{x}", "{y}"], ["{y}", "fixed", "{x}"]),
    (["{rest...}"], []),  # keeps the name
    (["{x}", "{y}"], ["{x}-{y}"]),
    (["{x}"], ["{x}"]),
    (["{x}", "{y}"], ["{x}"]),
)
WEIGHTS = (40, 30, 20, 3, 4, 3)
EXCLUDE_SHARE = 0.1  # of the routes
REST = {"mqtt": "#", "ems": ">", "smf": ">", "rv": ">", "ibm": "#", "yami4": "*"}
EXCLUDES = 30  # of one route

Routes = list[Route]


def made(  # noqa: PLR0913  # the parts of a route
    name: str,
    source: str,
    pattern: Sequence[str],
    target: str,
    template: Sequence[str] = (),
    *,
    exclude: Sequence[Sequence[str]] = (),
    inverse: str = "",
) -> Route:
    """Return a route from levels; without a template it keeps the name."""
    source_pattern = _source(source, pattern)
    there = DIALECTS[SYSTEMS[target]]
    text = there.leading + there.separator.join(template)
    parsed = (parse_template(text, there, source_pattern),) if template else ()
    sink = Target(target, target, Renderer(there), parsed, _allowed(target))
    excludes = tuple(_source(source, levels) for levels in exclude)
    dialect = DIALECTS[SYSTEMS[source]]
    return Route(name, source, dialect, source_pattern, (sink,), excludes, inverse=inverse)


@cache
def _allowed(endpoint: str) -> tuple[SourcePattern, ...]:
    """Return the `allow` patterns of an endpoint: those of a usual one with a 1 in its name."""
    if endpoint not in USUAL or "1" not in endpoint:
        return ()
    rest = REST[SYSTEMS[endpoint]]
    return tuple(_source(endpoint, [word, rest]) for word in ("from", *WORDS))


def _source(endpoint: str, levels: Sequence[str]) -> SourcePattern:
    dialect = DIALECTS[SYSTEMS[endpoint]]
    return parse_source(dialect.leading + dialect.separator.join(levels), dialect)


def usual(count: int, *, tangled: bool = False) -> Routes:
    """Return routes of the shapes that are common in mapping files; one in ten loses information.

    Tangled routes share their prefixes, so that many overlap and some form cycles.
    """
    rng = random.Random(7)  # noqa: S311  # the same routes in every run
    routes: Routes = []
    for number in range(count):
        source, target = rng.sample(USUAL, 2)
        before = [rng.choice(WORDS), rng.choice(SITES)] + ([] if tangled else [f"u{number}"])
        after, ending = rng.choices(SHAPES, WEIGHTS)[0]
        start = before if tangled else ["from", source, *before]
        exclude = [[*before, "private", *after[1:]]] if rng.random() < EXCLUDE_SHARE else []
        template = [*start, *ending] if ending else []
        routes.append(
            made(f"r{number}", source, [*before, *after], target, template, exclude=exclude)
        )
    return routes


def tangled(count: int) -> Routes:
    return usual(count, tangled=True)


def identical(count: int) -> Routes:
    """Return copies of one route."""
    shape = ("mqtt1", ["orders", "{x}", "{rest...}"], "ems1", ["orders", "{x}", "{rest...}"])
    return [made(f"r{number}", *shape) for number in range(count)]


def everything(count: int) -> Routes:
    """Return bridges for all names, between all brokers."""
    rng = random.Random(7)  # noqa: S311  # the same routes in every run
    pairs = [rng.sample(USUAL, 2) for _ in range(count)]
    return [
        made(f"r{number}", source, [f"p{number}"] * (number % 2) + [REST[SYSTEMS[source]]], target)
        for number, (source, target) in enumerate(pairs)
    ]


def deep(count: int) -> Routes:
    """Return routes with prefixes of fourteen levels that differ in the last levels."""
    return [
        made(
            f"r{number}",
            "mqtt1",
            [*"abcdefghijkl", f"s{number // 10}", f"t{number}", "{x}", "{rest...}"],
            "ems2",
            [*"abcdefghijkl", f"s{number // 10}", "{x}", f"t{number}", "{rest...}"],
        )
        for number in range(count)
    ]


def many_rests(count: int) -> Routes:
    """Return routes with IBM MQ patterns that each have four multi-level wildcards."""
    return [
        made(f"r{number}", "ibm1", ["#", f"a{number % 50}", "#", f"b{number % 7}", "#", "c", "#"],
             "ibm2")
        for number in range(count)
    ]  # fmt: skip


def most_rests(count: int) -> Routes:
    """Return routes with patterns that each have eight multi-level wildcards."""
    routes: Routes = []
    for number in range(count):
        levels = [part for letter in "abcdefg" for part in ("#", f"{letter}{number % 9}")]
        routes.append(made(f"r{number}", "ibm1", [*levels, "#"], "ibm2"))
    return routes


def guarded_rests(count: int) -> Routes:
    """Return routes with two multi-level wildcards, and twenty excludes with three."""
    return [
        made(f"r{number}", "ibm1", ["#", f"a{number}", "#"], "ibm2",
             exclude=[["#", f"x{other}", "#", f"y{other}", "#"] for other in range(20)])
        for number in range(count)
    ]  # fmt: skip


def middle_rests(count: int) -> Routes:
    """Return routes with a multi-level wildcard before the only level that differs."""
    return [
        made(f"r{number}", "ibm1", ["#", f"device{number}", "{x}"], "ibm2", ["to", f"d{number}",
             "{x}"])
        for number in range(count)
    ]  # fmt: skip


def globs(count: int) -> Routes:
    """Return routes with two partial wildcards per pattern."""
    return [
        made(f"r{number}", "smart1", [f"a{number % 30}*", f"*{number % 9}z", "..."], "smart2")
        for number in range(count)
    ]


def single_wildcards(count: int) -> Routes:
    """Return routes with one fixed level among single-level wildcards, at different positions."""
    routes: Routes = []
    for number in range(count):
        levels = ["+"] * 8
        levels[number % 8] = f"w{number}"
        routes.append(made(f"r{number}", "mqtt1", levels, "mqtt2"))
    return routes


def crossed(count: int) -> Routes:
    """Return such routes, half of them in the opposite direction."""
    routes: Routes = []
    for number in range(count):
        levels = ["+"] * 8
        levels[number % 8] = f"w{number // 2}"
        ends = ("mqtt1", "mqtt2") if number % 2 else ("mqtt2", "mqtt1")
        routes.append(made(f"r{number}", ends[0], levels, ends[1]))
    return routes


def functions(count: int) -> Routes:
    """Return routes whose template functions lose information, and may overlap."""
    return [
        made(f"r{number}", f"mqtt{number % 3 + 1}", [f"a{number}", "{x}", "{y}", "{r...}"], "ems2",
             ["a", f"{{x|upper}}-{{y|split:-:{number % 20}}}", "{r...|lower}", "z{x}"])
        for number in range(count)
    ]  # fmt: skip


def excluding(count: int) -> Routes:
    """Return routes with thirty excludes each."""
    return [
        made(f"r{number}", "mqtt1", [f"p{number}", "#"], "smf2",
             exclude=[[f"p{number}", f"x{other}", "#"] for other in range(EXCLUDES)])
        for number in range(count)
    ]  # fmt: skip


def both_ways(count: int) -> Routes:
    """Return routes of which half are the reverse of the others."""
    routes: Routes = []
    for number in range(count // 2):
        ends = (USUAL[number % 10], USUAL[(number + 1 + number // 10 % 9) % 10])
        one = (ends[0], ["from", f"p{number}", "{x}", "{y}"])
        other = (ends[1], ["from", f"q{number}", "{y}", "{x}"])
        there, back = f"r{number}", f"r{number}.back"
        routes += [made(there, *one, *other, inverse=back), made(back, *other, *one, inverse=there)]
    return routes


def chained(count: int) -> Routes:
    """Return routes around a ring of ten brokers, with prefixes that rarely form a cycle."""
    routes: Routes = []
    for number in range(count):
        at, lane = number % CHAIN, number // CHAIN
        after = (at + 1) % CHAIN
        prefix = f"lane{lane + (after == 0)}"
        routes.append(
            made(f"r{number}", f"chain{at}", [f"lane{lane}", "{x}", "{r...}"], f"chain{after}",
                 [prefix, "{x}", "{r...}"])
        )  # fmt: skip
    return routes


def meshed(count: int) -> Routes:
    """Return routes from each of ten brokers to every other with the same names: many cycles."""
    routes: Routes = []
    for number in range(count):
        at = number % CHAIN
        after = (at + 1 + number // CHAIN % (CHAIN - 1)) % CHAIN
        lane = f"lane{number // (CHAIN * (CHAIN - 1))}"
        routes.append(made(f"r{number}", f"chain{at}", [lane, "#"], f"chain{after}"))
    return routes


SETS: Mapping[str, Callable[[int], Routes]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            usual, tangled, identical, everything, deep, many_rests, most_rests, guarded_rests,
            middle_rests, globs, single_wildcards, crossed, functions, excluding, both_ways,
            chained, meshed,
        )
    }
)  # fmt: skip
