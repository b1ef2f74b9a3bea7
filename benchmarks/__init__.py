"""Benchmarks; `make bench` runs them all in sequence."""

import signal

# SIGTERM ends a benchmark like an interrupt, so that it stops the programs it started.
signal.signal(signal.SIGTERM, signal.default_int_handler)
