"""A small YAMI4 broker for trials and tests; it keeps everything in memory."""

from gateway.trial.brokers.yami4.core import OverflowPolicy, Yami4BrokerOptions
from gateway.trial.brokers.yami4.server import Yami4Broker

__all__ = ["OverflowPolicy", "Yami4Broker", "Yami4BrokerOptions"]
