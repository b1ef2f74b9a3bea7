"""Observation of a running gateway: heartbeats, watchdog and tracing."""
