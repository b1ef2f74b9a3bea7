"""A yardstick: MQTT -> JMS -> MQTT with callbacks, three calls of Java per message.

paho's callback sends each message with JPype, and a Java listener in Python publishes it again.
"""

import sys
from typing import Any

import jpype
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

jms_url, factory, mqtt_port, *jars = sys.argv[1:]
jpype.startJVM("-Xrs", classpath=jars, interrupt=False)  # otherwise it may crash at SIGTERM
connection = jpype.JClass(factory)(jms_url).createConnection()
connection.setClientID("callbacks")
sending = connection.createSession(False, 1)
producer = sending.createProducer(None)
mqtt = paho.Client(CallbackAPIVersion.VERSION2, client_id="callbacks")
mqtt.max_inflight_messages_set(60_000)


def to_jms(_client: object, _data: object, message: paho.MQTTMessage) -> None:
    sent = sending.createBytesMessage()
    sent.writeBytes(jpype.JArray(jpype.JByte)(message.payload))
    topic = sending.createTopic("B." + message.topic.removeprefix("src/").replace("/", "."))
    producer.send(topic, sent, 2, 4, 0)  # persistent


@jpype.JImplements("javax.jms.MessageListener")
class Listener:
    @jpype.JOverride  # type: ignore[untyped-decorator]  # JPype has no types
    def onMessage(self, message: Any) -> None:  # noqa: ANN401, N802  # of Java, with Java's name
        data = jpype.JArray(jpype.JByte)(int(message.getBodyLength()))
        message.readBytes(data)
        name = str(message.getJMSDestination().getTopicName()).removeprefix("B.").replace(".", "/")
        mqtt.publish(f"dst/{name}", bytes(data), 1)
        message.acknowledge()


receiving = connection.createSession(False, 2)
consumer = receiving.createDurableSubscriber(receiving.createTopic("B.>"), "callbacks")
consumer.setMessageListener(Listener())
connection.start()
mqtt.on_message = to_jms
mqtt.connect("127.0.0.1", int(mqtt_port))
mqtt.subscribe("src/#", 1)
mqtt.loop_forever()
