"""Sending of archived messages and dead letters again, from a process beside the gateway."""
