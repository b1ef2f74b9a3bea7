"""A yardstick: python-qpid-proton moves the messages of a queue to the exchange of another vhost.

A message is accepted at its queue once the other vhost has accepted its copy.
"""

import sys

from proton import Delivery, Event
from proton.handlers import MessagingHandler
from proton.reactor import Container


class Relay(MessagingHandler):  # type: ignore[misc]  # proton has no types
    """Reads `queue` of the first URL. Mutable: the deliveries without an answer."""

    def __init__(self, near: str, far: str, queue: str) -> None:
        super().__init__(prefetch=500, auto_accept=False)
        self.ends, self.queue = (near, far), queue
        self.unanswered: dict[str, Delivery] = {}

    def on_start(self, event: Event) -> None:
        near, far = (
            event.container.connect(
                url.rpartition("/")[0],
                virtual_host=f"vhost:{url.rpartition('/')[2]}",
                allowed_mechs="PLAIN",
            )
            for url in self.ends
        )
        self.sender = event.container.create_sender(far, None)
        event.container.create_receiver(near, f"/queues/{self.queue}")

    def on_message(self, event: Event) -> None:
        key = event.message.annotations["x-routing-key"]
        event.message.address = f"/exchanges/amq.topic/dst{key[3:]}"
        self.unanswered[self.sender.send(event.message).tag] = event.delivery

    def on_accepted(self, event: Event) -> None:
        self.accept(self.unanswered.pop(event.delivery.tag))


Container(Relay(*sys.argv[1:])).run()
