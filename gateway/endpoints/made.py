"""Things that a source made at its broker, and that stay there when the gateway does not run.

    made    noted in the memory of the source (`endpoints.source_memory`) before the broker has it,
            or at once where only its answer tells that it was absent
    held    the answer of the broker about it; asked by `gateway withdraw`
    ended   by `gateway withdraw --yes`; the memory forgets it

A kind with `makes` in its row has two functions in its module. Both use a connection of their own:

    count_held(settings, made) -> Held
    end_made(settings, made) -> None    has no effect where it is absent

Both raise EndpointError when the broker does not answer, or refuses.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Made(NamedTuple):
    """One thing at a broker.

    `kind` is the broker's word for it, such as `queue`, and `name` its name there. `broker` is the
    key of the broker (`EndpointSettings.broker_key`). `within` completes the name: the stream of a
    consumer, or the client id of a durable subscription; empty where the name is complete.
    """

    kind: str
    name: str
    broker: str
    within: str = ""


class Held(NamedTuple):
    """The answer of a broker about a thing: its number of messages, None where it does not tell."""

    messages: int | None
    exists: bool = True


UNKNOWN: Final = Held(None)
ABSENT: Final = Held(0, exists=False)
