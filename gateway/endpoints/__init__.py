"""Connections to messaging systems: they move bytes and never translate."""
