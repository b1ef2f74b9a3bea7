"""Continuous reconciliation (`--follow`): Structured Streaming over new files of the archive."""
