"""Conversion of closed journals to Parquet segments with their digests and name pairs."""
