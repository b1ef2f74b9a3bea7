"""A small SMF broker for trials and tests, with an optional store on disk."""

from gateway.trial.brokers.smf.options import BrokerOptions, InjectedFaults, QueueOptions
from gateway.trial.brokers.smf.server import SmfBroker
from gateway.trial.brokers.smf.vpn import BrokerState

__all__ = ["BrokerOptions", "BrokerState", "InjectedFaults", "QueueOptions", "SmfBroker"]
