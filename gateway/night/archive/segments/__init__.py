"""Conversion of closed journals to Parquet segments with their id sets and name pairs."""
