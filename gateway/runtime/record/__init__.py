"""Archive rows of received, delivered and observed messages, and their restoration."""
