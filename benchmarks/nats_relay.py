"""A yardstick in ten lines: nats-py moves the messages of one stream into another."""

import asyncio
import sys
from contextlib import suppress

import nats
from nats.errors import TimeoutError as NothingError


async def main() -> None:
    near, far = await nats.connect(sys.argv[1]), await nats.connect(sys.argv[2])
    source, sink = await near.jetstream().pull_subscribe("src.>", "relay"), far.jetstream()
    while True:
        with suppress(NothingError):
            batch = await source.fetch(500)
            await asyncio.gather(*(sink.publish("dst" + m.subject[3:], m.data) for m in batch))
            await asyncio.gather(*(each.ack() for each in batch))


asyncio.run(main())
