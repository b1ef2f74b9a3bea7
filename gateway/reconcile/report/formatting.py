"""Numbers, durations and foreign text as the HTML report shows them."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape

MAX_TEXT: Final = 300  # characters of a text that are shown
MAX_ATTRIBUTE: Final = 2_000  # characters of an attribute
_THOUSAND: Final = 1_000
_SCALES: Final = ((120_000_000, 1_000_000, "s"), (7_200_000_000, 60_000_000, "min"))
_HOUR: Final = 3_600_000_000  # microseconds


def visible(value: str, limit: int = MAX_TEXT) -> str:
    """Return `value` cut to `limit`, with an escape for each character that is not printable.

    Control characters, lone surrogates and marks that reverse the writing direction are escaped.
    """
    cut = value[:limit]
    shown = cut if cut.isprintable() else "".join(map(_escaped, cut))
    return shown if len(value) <= limit else shown + _rest(value)


def marked(value: str, limit: int = MAX_TEXT) -> Markup:
    """Return `visible(value)` as HTML, each escape in an element that tells it from a backslash.

    The element has no quotation mark, so that it cannot end an attribute.
    """
    cut = value[:limit]
    if cut.isprintable():
        return escape(visible(value, limit))
    shown = Markup().join(
        each if each.isprintable() else Markup("<span class=ctl>{}</span>").format(_escaped(each))
        for each in cut
    )
    return shown if len(value) <= limit else shown + _rest(value)


def attribute(value: str) -> Markup:
    """Return `visible(value)` escaped for an attribute, where no element can stand."""
    return escape(visible(value, MAX_ATTRIBUTE))


def _rest(value: str) -> str:
    return f"… ({len(value):,} characters)"


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def duration(micros: float) -> str:
    """Return a duration in microseconds with the unit that suits its size."""
    if micros < _THOUSAND:
        return f"{micros:.0f} µs"
    if micros < _THOUSAND**2:
        return f"{micros / _THOUSAND:.3g} ms"
    for end, unit, name in _SCALES:
        if micros < end:
            return f"{micros / unit:.3g} {name}"
    return f"{micros / _HOUR:,.1f} h"


def amount(value: float) -> str:
    """Return a count or a rate: three digits below a thousand, all digits above."""
    if round(value) >= _THOUSAND or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
