"""Bridges of mosquitto.conf to a mapping."""
