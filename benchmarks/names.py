"""Measures translation and matching of names, compared with a dict look-up and paho's matcher.

    python -m benchmarks.names [--names N]

Times are processor times of this process. Compare the ratios; the rates depend on the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time

from paho.mqtt.client import topic_matches_sub

from gateway.dialects.base import Dialect, parse_pattern, parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.model.matching import matches
from gateway.model.pattern import Pattern
from gateway.translate.names import Renderer, Translator

SAMPLES = {
    "plain": ("mqtt", "ems", "plant/line{}/press/temperature/value"),
    "not ASCII": ("mqtt", "ems", "Werk/Straße{}/Presse/Öldruck"),
    "escaped": ("mqtt", "ems", "plant/v1.2/line{}//value"),
    "plain, to SMF": ("ems", "smf", "orders.emea.fx{}.limit.buy"),
    "dots and slashes": ("ems", "smartsockets", "orders/emea.fx{}.limit"),
}
ROUNDS = 3


def rate(call: Callable[[str], object], names: Sequence[str]) -> float:
    """Return the calls per second, the best of ROUNDS rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        start = process_time()
        for name in names:
            call(name)
        best = max(best, len(names) / (process_time() - start))
    return best


def rate_of_new_names(source: Dialect, target: Dialect, names: Sequence[str]) -> float:
    best = 0.0
    for _ in range(ROUNDS):
        translate = Translator(source, Renderer(target)).name
        start = process_time()
        for name in names:
            translate(name)
        best = max(best, len(names) / (process_time() - start))
    return best


def translation(count: int) -> None:
    print(f"{'translation':20}{'new name/s':>15}{'known name/s':>15}{'of a dict look-up':>20}")
    for label, (source, target, shape) in SAMPLES.items():
        names = [shape.format(number) for number in range(count)]
        translator = Translator(DIALECTS[source], Renderer(DIALECTS[target]))
        for name in names:
            translator.name(name)
        known = {name: name for name in names}
        first = rate_of_new_names(DIALECTS[source], DIALECTS[target], names)
        seen, bare = rate(translator.name, names), rate(known.__getitem__, names)
        print(f"{label:20}{first:15,.0f}{seen:15,.0f}{seen / bare:20.0%}")


def matching(count: int) -> None:
    mqtt = DIALECTS["mqtt"]
    names = [f"plant/line{number}/press/temperature/value" for number in range(count)]
    levels = {name: parse_subject(name, mqtt).levels for name in names}
    print(f"{'matching':20}{'gateway/s':>15}{'paho/s':>15}{'ratio':>20}")
    for text in ("plant/+/press/#", "plant/+/+/+/value", "other/#"):
        (pattern,) = parse_pattern(text, mqtt)
        gateway_rate = rate(partial(_matches, pattern, levels), names)
        paho = rate(partial(topic_matches_sub, text), names)
        print(f"{text:20}{gateway_rate:15,.0f}{paho:15,.0f}{gateway_rate / paho:20.1f}")


def _matches(pattern: Pattern, levels: dict[str, tuple[str, ...]], name: str) -> bool:
    return matches(pattern, levels[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=20_000)
    args = parser.parse_args()
    translation(args.names)
    matching(args.names)


if __name__ == "__main__":
    main()
