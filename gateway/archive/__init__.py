"""The record of what was bridged: durable before a source is settled."""
