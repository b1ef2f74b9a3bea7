"""Batches in flight: from their receipt to their settlement at the source."""
