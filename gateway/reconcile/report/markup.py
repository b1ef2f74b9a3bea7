"""Foreign text as HTML: cut, escaped, and with its unprintable characters marked."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape

from gateway.reconcile.report.formatting import MAX_TEXT, rest, shortened
from gateway.terminal import escaped

MAX_ATTRIBUTE: Final = 2_000  # characters of an attribute


def marked(value: str, limit: int = MAX_TEXT) -> Markup:
    """Return `shortened(value)` as HTML, each escape in an element that tells it from a backslash.

    The element has no quotation mark, so that it cannot end an attribute.
    """
    cut = value[:limit]
    if cut.isprintable():
        return escape(shortened(value, limit))
    shown = Markup().join(
        each if each.isprintable() else Markup("<span class=ctl>{}</span>").format(escaped(each))
        for each in cut
    )
    return shown if len(value) <= limit else shown + rest(value)


def attribute(value: str) -> Markup:
    """Return `shortened(value)` escaped for an attribute, where no element can stand."""
    return escape(shortened(value, MAX_ATTRIBUTE))
