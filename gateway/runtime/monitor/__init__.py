"""Observation of a running gateway: counters, status, heartbeats, watchdog and tracing."""
