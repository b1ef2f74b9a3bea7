"""A yardstick in ten lines: paho's `on_message` publishes to the other broker."""

import sys

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

source_port, target_port, qos = map(int, sys.argv[1:4])
target = paho.Client(CallbackAPIVersion.VERSION2)
target.max_inflight_messages_set(60_000)
target.connect("127.0.0.1", target_port)
target.loop_start()
source = paho.Client(CallbackAPIVersion.VERSION2)
source.on_message = lambda _c, _d, m: target.publish("dst" + m.topic[3:], m.payload, qos)  # type: ignore[assignment]  # its result is ignored
source.connect("127.0.0.1", source_port)
source.subscribe("src/#", qos)
source.loop_forever()
