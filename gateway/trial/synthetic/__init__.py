"""Synthetic archives with known faults, for tests, benchmarks and `gateway archive generate`."""
