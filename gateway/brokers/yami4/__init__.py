"""A small broker that speaks YAMI4, for trials and tests; it keeps nothing on disk."""

from gateway.brokers.yami4.options import BrokerOptions, OverflowPolicy
from gateway.brokers.yami4.server import Yami4Broker

__all__ = ["BrokerOptions", "OverflowPolicy", "Yami4Broker"]
