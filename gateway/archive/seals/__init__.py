"""Seals: the evidence that the segments of an archive are complete and unchanged."""
