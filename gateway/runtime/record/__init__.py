"""Archive rows of received, delivered and observed messages, of gaps, and their restoration."""
