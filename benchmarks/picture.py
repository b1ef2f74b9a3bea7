"""A chart of a few lines over two logarithmic scales, as an SVG file of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.reconcile.report.markup import Html, amount, element, empty

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 130, 40, 50
STYLES = (("#0b6e4f", ""), ("#b3261e", "6 3"), ("#444", "2 3"))  # never told by colour alone
SANS = "font-family:sans-serif;font-size:12px"

Scale = Callable[[float], float]


@dataclass(frozen=True)
class Line:
    """Points of one way, each x and y above 0."""

    label: str
    points: Sequence[tuple[float, float]]


def picture(title: str, across: str, up: str, lines: Sequence[Line]) -> str:
    """The file; its description has every number, for those who do not see it."""
    points = [point for line in lines for point in line.points]
    x, x_ticks = scale([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y, y_ticks = scale([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    parts = [element("title", title), element("desc", described(lines, across, up))]
    parts.append(empty("rect", width=str(WIDTH), height=str(HEIGHT), fill="white"))
    parts.append(word(title, LEFT, 20, "start"))
    for tick in y_ticks:
        parts += [rule(LEFT, y(tick), WIDTH - RIGHT, y(tick))]
        parts += [word(amount(tick), LEFT - 6, y(tick) + 4, "end")]
    for tick in x_ticks:
        parts += [rule(x(tick), TOP, x(tick), HEIGHT - BOTTOM)]
        parts += [word(amount(tick), x(tick), HEIGHT - BOTTOM + 16, "middle")]
    parts.append(word(across, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle"))
    parts.append(word(up, LEFT, TOP - 8, "end"))
    for line, (colour, dashes) in zip(lines, STYLES, strict=True):
        parts += drawn(line, x, y, colour, dashes)
    size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": str(WIDTH), "height": str(HEIGHT)}
    return element("svg", *parts, xmlns="http://www.w3.org/2000/svg", role="img", **size) + "\n"


def scale(values: Sequence[float], start: float, end: float) -> tuple[Scale, list[float]]:
    """Where a value stands between `start` and `end`, and the powers of ten around all of them."""
    least = math.floor(math.log10(min(values)))
    most = max(math.ceil(math.log10(max(values))), least + 1)

    def place(value: float) -> float:
        return start + (math.log10(value) - least) / (most - least) * (end - start)

    return place, [10.0**power for power in range(least, most + 1)]


def drawn(line: Line, x: Scale, y: Scale, colour: str, dashes: str) -> list[Html]:
    """The line, its points, and its name behind the last."""
    places = [(x(across), y(up)) for across, up in line.points]
    path = "M" + "L".join(f"{across:.1f} {up:.1f}" for across, up in places)
    stroke = {"fill": "none", "stroke": colour, "stroke_width": "2", "stroke_dasharray": dashes}
    last = places[-1]
    return [
        empty("path", d=path, **stroke),
        *[empty("circle", cx=f"{a:.1f}", cy=f"{u:.1f}", r="3", fill=colour) for a, u in places],
        word(line.label, last[0] + 8, last[1] + 4, "start", colour),
    ]


def described(lines: Sequence[Line], across: str, up: str) -> str:
    told = [
        f"{line.label}: {', '.join(f'{y:.1f} at {amount(x)}' for x, y in line.points)}"
        for line in lines
    ]
    return f"{up} by {across}. {'; '.join(told)}"


def word(text: str, x: float, y: float, anchor: str, colour: str = "#222") -> Html:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text_anchor": anchor}
    return element("text", text, fill=colour, style=SANS, **place)


def rule(x: float, y: float, to_x: float, to_y: float) -> Html:
    return empty("path", d=f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}", stroke="#ddd")
