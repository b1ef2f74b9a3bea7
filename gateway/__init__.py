"""A message gateway between brokers, with exact translation of names."""

__version__ = "0.2.0"
