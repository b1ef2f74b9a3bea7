"""A small broker that speaks SMF, for trials and tests; it keeps nothing on disk."""

from gateway.brokers.smf.options import BrokerOptions, Faults, QueueOptions
from gateway.brokers.smf.server import SmfBroker
from gateway.brokers.smf.vpn import State

__all__ = ["BrokerOptions", "Faults", "QueueOptions", "SmfBroker", "State"]
