"""Sends again what archive or dead letters have, from a process beside the gateway."""
