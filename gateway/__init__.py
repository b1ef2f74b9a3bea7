"""A message gateway between brokers, with exact translation of names."""

__version__ = "0.1.0"
