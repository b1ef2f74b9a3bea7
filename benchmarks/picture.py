"""A chart of a few lines over two logarithmic scales, as an SVG file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jinja2 import Environment

from gateway.night.reconcile.formatting import amount

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 130, 40, 50
STYLES = (("#0b6e4f", ""), ("#b3261e", "6 3"), ("#444", "2 3"))  # differ in dash and in colour
TEMPLATE = """\
{%- macro text(content, x, y, anchor, colour="#222") -%}
<text fill="{{ colour }}" style="font-family:sans-serif;font-size:12px" x="{{ "%.1f"|format(x) }}" \
y="{{ "%.1f"|format(y) }}" text-anchor="{{ anchor }}">{{ content }}</text>
{%- endmacro -%}
{%- macro rule(x, y, to_x, to_y) -%}
<path d="M{{ "%.1f %.1f"|format(x, y) }}L{{ "%.1f %.1f"|format(to_x, to_y) }}" stroke="#ddd"/>
{%- endmacro -%}
<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {{ width }} {{ height }}" \
width="{{ width }}" height="{{ height }}"><title>{{ title }}</title>\
<desc>{{ description }}</desc><rect width="{{ width }}" height="{{ height }}" fill="white"/>\
{{ text(title, left, 20, "start") }}
{%- for value, y in y_ticks -%}
{{ rule(left, y, right, y) }}{{ text(value|amount, left - 6, y + 4, "end") }}
{%- endfor -%}
{%- for value, x in x_ticks -%}
{{ rule(x, top, x, bottom) }}{{ text(value|amount, x, bottom + 16, "middle") }}
{%- endfor -%}
{{ text(x_label, (left + right) / 2, height - 12, "middle") }}\
{{ text(y_label, left, top - 8, "end") }}
{%- for line in lines -%}
<path d="M{% for x, y in line.points %}{{ "L" if not loop.first }}{{ "%.1f %.1f"|format(x, y) }}\
{% endfor %}" fill="none" stroke="{{ line.colour }}" stroke-width="2"\
{% if line.dashes %} stroke-dasharray="{{ line.dashes }}"{% endif %}/>
{%- for x, y in line.points -%}
<circle cx="{{ "%.1f"|format(x) }}" cy="{{ "%.1f"|format(y) }}" r="3" fill="{{ line.colour }}"/>
{%- endfor -%}
{{ text(line.label, line.points[-1][0] + 8, line.points[-1][1] + 4, "start", line.colour) }}
{%- endfor -%}
</svg>
"""

Scale = Callable[[float], float]


@dataclass(frozen=True)
class Line:
    """Points of one line, each x and y above 0."""

    label: str
    points: Sequence[tuple[float, float]]


def picture(title: str, x_label: str, y_label: str, lines: Sequence[Line]) -> str:
    """Return the SVG file; its description has every number as text."""
    points = [point for line in lines for point in line.points]
    x, x_ticks = scale([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y, y_ticks = scale([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    drawn = [
        {
            "label": line.label,
            "points": [(x(across), y(up)) for across, up in line.points],
            "colour": colour,
            "dashes": dashes,
        }
        for line, (colour, dashes) in zip(lines, STYLES, strict=True)
    ]
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    environment.filters["amount"] = amount
    return environment.from_string(TEMPLATE).render(
        title=title, description=description(lines, x_label, y_label), lines=drawn,
        x_label=x_label, y_label=y_label,
        x_ticks=[(value, x(value)) for value in x_ticks],
        y_ticks=[(value, y(value)) for value in y_ticks],
        width=WIDTH, height=HEIGHT,
        left=LEFT, right=WIDTH - RIGHT, top=TOP, bottom=HEIGHT - BOTTOM,
    )  # fmt: skip


def scale(values: Sequence[float], start: float, end: float) -> tuple[Scale, list[float]]:
    """Return a map of values to pixels from `start` to `end`, and the powers of ten around them."""
    lowest = math.floor(math.log10(min(values)))
    highest = max(math.ceil(math.log10(max(values))), lowest + 1)

    def position(value: float) -> float:
        return start + (math.log10(value) - lowest) / (highest - lowest) * (end - start)

    return position, [10.0**power for power in range(lowest, highest + 1)]


def description(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    by_line = [
        f"{line.label}: {', '.join(f'{y:.1f} at {amount(x)}' for x, y in line.points)}"
        for line in lines
    ]
    return f"{y_label} by {x_label}. {'; '.join(by_line)}"
