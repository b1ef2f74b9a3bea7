"""A yardstick in twenty lines: confluent-kafka moves the records of one topic into another.

It consumes in batches, produces with `acks=all`, and commits what the servers have acknowledged.
"""

import sys

from confluent_kafka import Consumer, Producer

near, far = sys.argv[1:3]
reader = Consumer(
    {"bootstrap.servers": near, "group.id": "relay", "enable.auto.commit": False,
     "auto.offset.reset": "earliest"}
)  # fmt: skip
writer = Producer({"bootstrap.servers": far, "acks": "all", "enable.idempotence": True})
reader.subscribe(["src"])
while True:
    if records := reader.consume(500, 0.1):
        for each in records:
            writer.produce("dst", each.value(), each.key(), headers=each.headers())
        writer.flush()
        reader.commit(asynchronous=False)
