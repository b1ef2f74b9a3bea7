"""Continuous reconciliation: Structured Streaming over the files that land."""
