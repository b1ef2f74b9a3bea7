"""Bridges of NanoMQ and EMQX 4 to a mapping."""
