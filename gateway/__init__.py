"""Carries messages between brokers, translating their names exactly."""

__version__ = "0.1.0"
