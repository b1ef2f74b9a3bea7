"""The differences of broker systems that their clients see: one row for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.endpoints.nats import sink
from gateway.model.message import Message, identity_of

ACK_WAIT: Final = 1.0  # seconds until a stream delivers a message with a lost acknowledgement again


@dataclass(frozen=True, slots=True)
class Semantics:
    """A system's rules.

    `knows`: seconds in which a repeated message is known by its id, and kept once. `keeps`: its
    stream keeps what was acknowledged, so a consumer that is made again begins at the first
    message. `counts`: its messages have numbers without holes. `partitions`: the parts of its
    log; a source has the place in each, and the broker its last commit, which marks nothing.
    `sticky`: behind a refusal for want of room, the rest of the connection is also refused.
    `deaf`: while it is blocked, it reads nothing from publishers, and they know that. `ends`: a
    message that its user may not send ends the session; the client refuses it by the text of the
    end, and sends again what has no answer.
    """

    knows: float = 0.0
    keeps: bool = False
    counts: bool = False
    partitions: int = 0
    sticky: bool = True
    deaf: bool = False
    ends: bool = False


PLAIN: Final = Semantics()
SEMANTICS: Final[Mapping[str, Semantics]] = {
    "nats": Semantics(knows=3.0, keeps=True, counts=True, sticky=False),
    "kafka": Semantics(keeps=True, partitions=3),
    "rabbitmq": Semantics(sticky=False, deaf=True),
    "amqp": Semantics(sticky=False, deaf=True, ends=True),  # of RabbitMQ 4
}


def message_id(message: Message) -> str | None:
    """Return the id by which a stream knows a message again; it is the product's."""
    identity = identity_of(message.headers)
    if identity is None or not isinstance(message.payload, bytes):
        return None
    return sink._message_id(b"", identity, message, message.payload)  # noqa: SLF001  # the product's
