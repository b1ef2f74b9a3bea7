"""Compaction: the segments of an hour become few merged segments, and every row counts once."""
