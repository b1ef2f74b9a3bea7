"""Maintenance of an archive with Spark: compaction, and the dictionary of shortened names."""
