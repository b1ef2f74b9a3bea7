"""Archive housekeeping with Spark: compaction, retention, the table of short names."""
