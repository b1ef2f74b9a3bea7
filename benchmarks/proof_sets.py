"""Sets of routes for the proofs: an ordinary file, and those that are hard in one way each.

Every set is made of a number of routes and is the same in every run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from gateway.dialects.registry import DIALECTS
from gateway.routing.captures import SourcePattern, parse_source
from gateway.routing.route import Route, Target
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
    (["{rest...}"], []),  # the name is kept
    (["{x}", "{y}"], ["{x}-{y}"]),
    (["{x}"], ["{x}"]),
    (["{x}", "{y}"], ["{x}"]),
)
WEIGHTS = (40, 30, 20, 3, 4, 3)
EXCLUDING = 0.1  # routes with an exclude
REST = {"mqtt": "#", "ems": ">", "smf": ">", "rv": ">", "ibm": "#", "yami4": "*"}
MANY = 30  # excludes of one route

Routes = list[Route]


def made(  # noqa: PLR0913  # what a route has
    name: str,
    source: str,
    pattern: Sequence[str],
    target: str,
    template: Sequence[str] = (),
    *,
    exclude: Sequence[Sequence[str]] = (),
    inverse: str = "",
) -> Route:
    """A route of levels; without a template the name is kept."""
    taken = _source(source, pattern)
    there = DIALECTS[SYSTEMS[target]]
    text = there.leading + there.separator.join(template)
    read = parse_template(text, there, taken) if template else None
    sink = Target(target, target, Renderer(there), read, _allowed(target))
    excludes = tuple(_source(source, levels) for levels in exclude)
    dialect = DIALECTS[SYSTEMS[source]]
    return Route(name, source, dialect, taken, (sink,), excludes, inverse=inverse)


@cache
def _allowed(endpoint: str) -> tuple[SourcePattern, ...]:
    """Usual endpoints with a 1 in their name allow some names only."""
    if endpoint not in USUAL or "1" not in endpoint:
        return ()
    rest = REST[SYSTEMS[endpoint]]
    return tuple(_source(endpoint, [word, rest]) for word in ("from", *WORDS))


def _source(endpoint: str, levels: Sequence[str]) -> SourcePattern:
    dialect = DIALECTS[SYSTEMS[endpoint]]
    return parse_source(dialect.leading + dialect.separator.join(levels), dialect)


def usual(count: int, *, tangled: bool = False) -> Routes:
    """Shapes that mapping files are full of; one in ten loses something.

    Tangled ones share their prefixes, so that many meet, some twice and some in a round.
    """
    rng = random.Random(7)  # noqa: S311  # the same routes in every run
    routes: Routes = []
    for number in range(count):
        source, target = rng.sample(USUAL, 2)
        before = [rng.choice(WORDS), rng.choice(SITES)] + ([] if tangled else [f"u{number}"])
        after, ending = rng.choices(SHAPES, WEIGHTS)[0]
        start = before if tangled else ["from", source, *before]
        exclude = [[*before, "private", *after[1:]]] if rng.random() < EXCLUDING else []
        template = [*start, *ending] if ending else []
        routes.append(
            made(f"r{number}", source, [*before, *after], target, template, exclude=exclude)
        )
    return routes


def tangled(count: int) -> Routes:
    return usual(count, tangled=True)


def identical(count: int) -> Routes:
    """One route, copied and never changed."""
    shape = ("mqtt1", ["orders", "{x}", "{rest...}"], "ems1", ["orders", "{x}", "{rest...}"])
    return [made(f"r{number}", *shape) for number in range(count)]


def everything(count: int) -> Routes:
    """Bridges that take all there is, between all brokers."""
    rng = random.Random(7)  # noqa: S311  # the same routes in every run
    pairs = [rng.sample(USUAL, 2) for _ in range(count)]
    return [
        made(f"r{number}", source, [f"p{number}"] * (number % 2) + [REST[SYSTEMS[source]]], target)
        for number, (source, target) in enumerate(pairs)
    ]


def deep(count: int) -> Routes:
    """Prefixes of fourteen levels that differ only in the last ones."""
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
    """IBM MQ patterns with four wildcards for many levels each."""
    return [
        made(f"r{number}", "ibm1", ["#", f"a{number % 50}", "#", f"b{number % 7}", "#", "c", "#"],
             "ibm2")
        for number in range(count)
    ]  # fmt: skip


def most_rests(count: int) -> Routes:
    """The same with eight of them."""
    routes: Routes = []
    for number in range(count):
        levels = [part for letter in "abcdefg" for part in ("#", f"{letter}{number % 9}")]
        routes.append(made(f"r{number}", "ibm1", [*levels, "#"], "ibm2"))
    return routes


def guarded_rests(count: int) -> Routes:
    """Two of them, and twenty excludes with three."""
    return [
        made(f"r{number}", "ibm1", ["#", f"a{number}", "#"], "ibm2",
             exclude=[["#", f"x{other}", "#", f"y{other}", "#"] for other in range(20)])
        for number in range(count)
    ]  # fmt: skip


def middle_rests(count: int) -> Routes:
    """One wildcard for many levels before the only level that differs."""
    return [
        made(f"r{number}", "ibm1", ["#", f"device{number}", "{x}"], "ibm2", ["to", f"d{number}",
             "{x}"])
        for number in range(count)
    ]  # fmt: skip


def globs(count: int) -> Routes:
    """Levels with stars inside, two to a pattern."""
    return [
        made(f"r{number}", "smart1", [f"a{number % 30}*", f"*{number % 9}z", "..."], "smart2")
        for number in range(count)
    ]


def single_wildcards(count: int) -> Routes:
    """A fixed level among wildcards for one level, each time in another place."""
    routes: Routes = []
    for number in range(count):
        levels = ["+"] * 8
        levels[number % 8] = f"w{number}"
        routes.append(made(f"r{number}", "mqtt1", levels, "mqtt2"))
    return routes


def crossed(count: int) -> Routes:
    """The same, half of them from the second broker to the first."""
    routes: Routes = []
    for number in range(count):
        levels = ["+"] * 8
        levels[number % 8] = f"w{number // 2}"
        ends = ("mqtt1", "mqtt2") if number % 2 else ("mqtt2", "mqtt1")
        routes.append(made(f"r{number}", ends[0], levels, ends[1]))
    return routes


def functions(count: int) -> Routes:
    """Templates that lose something by functions, and may meet."""
    return [
        made(f"r{number}", f"mqtt{number % 3 + 1}", [f"a{number}", "{x}", "{y}", "{r...}"], "ems2",
             ["a", f"{{x|upper}}-{{y|split:-:{number % 20}}}", "{r...|lower}", "z{x}"])
        for number in range(count)
    ]  # fmt: skip


def excluding(count: int) -> Routes:
    """Thirty excludes for every route."""
    return [
        made(f"r{number}", "mqtt1", [f"p{number}", "#"], "smf2",
             exclude=[[f"p{number}", f"x{other}", "#"] for other in range(MANY)])
        for number in range(count)
    ]  # fmt: skip


def both_ways(count: int) -> Routes:
    """Half of them the ways back of the others."""
    routes: Routes = []
    for number in range(count // 2):
        ends = (USUAL[number % 10], USUAL[(number + 1 + number // 10 % 9) % 10])
        one = (ends[0], ["from", f"p{number}", "{x}", "{y}"])
        other = (ends[1], ["from", f"q{number}", "{y}", "{x}"])
        there, back = f"r{number}", f"r{number}.back"
        routes += [made(there, *one, *other, inverse=back), made(back, *other, *one, inverse=there)]
    return routes


def chained(count: int) -> Routes:
    """Ten brokers in a ring, each passing on to the next under prefixes that hardly ever close."""
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
    """Every broker of ten to every other, with names kept: more rounds than anyone can follow."""
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
