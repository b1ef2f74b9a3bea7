"""Closed journals to Parquet segments with their digests."""
