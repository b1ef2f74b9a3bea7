"""HTML from text and numbers that nothing in them can break; it knows no archive and no class.

Text is escaped unless it is `Html` already, cut to a length, and shows what has no glyph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

SHOWN: Final = 300  # characters of a text that are shown
_THOUSAND: Final = 1_000
_SCALES: Final = ((120_000_000, 1_000_000, "s"), (7_200_000_000, 60_000_000, "min"))
_HOUR: Final = 3_600_000_000  # microseconds


class Html(str):
    """Markup made here: it is not escaped again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and whether numbers stand below it."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a cell, and how loud: `none`, `note`, `warn`, `bad` or plain."""

    content: str
    css: str = ""


def join(parts: Iterable[str]) -> Html:
    return Html("".join(each if isinstance(each, Html) else text(each) for each in parts))


def element(name: str, *inside: str, **attributes: str) -> Html:
    """`<name ...>inside</name>`; `class_` and `aria_label` are written `class` and `aria-label`.

    An attribute that is the empty text is left out.
    """
    return Html(f"<{name}{_attributes(attributes)}>{join(inside)}</{name}>")


def empty(name: str, **attributes: str) -> Html:
    """An SVG element with nothing inside."""
    return Html(f"<{name}{_attributes(attributes)}/>")


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(visible(value, 2 * _THOUSAND))}"'
        for name, value in attributes.items()
        if value
    )


def visible(value: str, limit: int = SHOWN) -> str:
    """Plain text with an escape for each character that has no glyph, or turns the line around."""
    cut = value[:limit]
    seen = cut if cut.isprintable() else "".join(map(_glyph, cut))
    return seen if len(value) <= limit else f"{seen}… ({len(value):,} characters)"


def text(value: str, limit: int = SHOWN) -> Html:
    """The same as markup; the escapes are set apart from a backslash that was there."""
    cut = value[:limit]
    if cut.isprintable():
        return Html(escape(visible(value, limit)))
    marked = "".join(
        escape(each) if each.isprintable() else f'<span class="ctl">{_glyph(each)}</span>'
        for each in cut
    )
    return Html(marked if len(value) <= limit else f"{marked}… ({len(value):,} characters)")


def _glyph(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def code(value: str, limit: int = SHOWN) -> Html:
    """A name, a path or an identifier; one click selects all of it."""
    return element("code", text(value, limit)) if value else Html('<span class="quiet">-</span>')


def table(
    title: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, css: str = ""
) -> Html:
    """A table whose first cells head their rows; on a narrow screen every row is a card."""
    heads = [
        element("th", each.title, scope="col", class_="number" if each.number else "")
        for each in columns
    ]
    body = [_row(columns, row) for row in rows]
    inside = element("table", element("thead", element("tr", *heads)), element("tbody", *body))
    return element(
        "div", inside, class_=f"scroll {css}".strip(), role="region", tabindex="0", aria_label=title
    )


def _row(columns: Sequence[Column], row: Sequence[Cell]) -> Html:
    first, *others = row
    cells = [element("th", first.content, scope="row", class_=first.css)]
    for column, cell in zip(columns[1:], others, strict=True):
        css = f"number {cell.css}" if column.number else cell.css
        cells.append(element("td", cell.content, class_=css.strip(), data_label=column.title))
    return element("tr", *cells)


def duration(micros: float) -> str:
    """A time in microseconds with the unit a person would take."""
    if micros < _THOUSAND:
        return f"{micros:.0f} µs"
    if micros < _THOUSAND**2:
        return f"{micros / _THOUSAND:.3g} ms"
    for most, unit, name in _SCALES:
        if micros < most:
            return f"{micros / unit:.3g} {name}"
    return f"{micros / _HOUR:,.1f} h"


def amount(value: float) -> str:
    """A count or a rate: three digits below a thousand, all of them above."""
    if round(value) >= _THOUSAND or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
