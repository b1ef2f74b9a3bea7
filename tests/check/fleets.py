"""Configurations of several gateways for tests, and the output of `gateway check` about them."""

from __future__ import annotations

from collections.abc import Callable

Checked = tuple[int, list[str]]
Check = Callable[..., Checked]
ROUTE = '{from: {endpoint: a, pattern: "plant/{r...}"}, to: {endpoint: b, template: "plant/{r...}"}'
LOCAL = "host: localhost, port: 1883"
NOTHING = "no message circles, and none is carried twice from one broker to another"
PROVEN = f"given these `broker_id`s, {NOTHING}"
DOUBTED = f"given these `broker_id`s, which findings doubt, {NOTHING}"
OPEN = "cycles and doubles through their brokers are not excluded"


def gateway(name: str, one: str, other: str, route: str = f"{ROUTE}}}") -> str:
    """Return a gateway with the endpoints `a` and `b`; a text is what follows their kind."""
    return (
        f"gateway: {{name: {name}}}\n"
        f"endpoints:\n  a: {{kind: mqtt, {one}}}\n  b: {{kind: mqtt, {other}}}\n"
        f"routes:\n  r: {route}\n"
    )


def broker(name: str, version: str = "5", *, known: bool = True) -> str:
    identity = f", broker_id: {name}" if known else ""
    return f'host: {name}.example.com, version: "{version}"{identity}'


def ring(*versions: str, both: bool = False, known: bool = True) -> dict[str, str]:
    """Return gateways around three brokers; `versions` by hop, `TARGET SOURCE` or one for both."""
    pairs = [each.split() * 2 for each in versions]
    ends = ("one", "two", "three")
    sources = [pairs[-1], *pairs[:-1]]
    direction = ", direction: both" if both else ""
    return {
        name: gateway(
            name,
            broker(ends[at], sources[at][1], known=known),
            broker(ends[(at + 1) % 3], pairs[at][0], known=known),
            f"{ROUTE}{direction}}}",
        )
        for at, name in enumerate(("north", "south", "west"))
    }
