"""A small broker that speaks SMF, for trials and tests; on disk it keeps what it is told to."""

from gateway.brokers.smf.options import BrokerOptions, Faults, QueueOptions
from gateway.brokers.smf.server import SmfBroker
from gateway.brokers.smf.vpn import State

__all__ = ["BrokerOptions", "Faults", "QueueOptions", "SmfBroker", "State"]
